"""Which services are proposed by what CI and compose files start, and what is said of the rest."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import ServiceKind
from lockgate.core.discovery.found import Beside, Needed, Package, Plan, Said, Tree
from lockgate.core.discovery.services import about_services, needed, with_services

TREE = Tree(paths=frozenset(), tools=frozenset({"postgres"}))
PLACE = "://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/$PGDATABASE"


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("postgres", ServiceKind.POSTGRES),
        ("postgres:16-alpine", ServiceKind.POSTGRES),
        ("registry.example:5000/bitnami/postgresql@sha256:ab", ServiceKind.POSTGRES),
        ("postgis/postgis:16-3.4", ServiceKind.POSTGRES),
        ("Redis:7", ServiceKind.REDIS),
        ("valkey/valkey", ServiceKind.REDIS),
        ("mysql:8", None),
        ("redislabs-like", None),
    ],
)
def test_an_image_is_known_by_its_name(image, kind) -> None:
    found = needed(replace(TREE, beside=(Beside(image, "ci.yml"),)))

    assert [it.kind for it in found] == ([kind] if kind else [])


def test_one_service_of_each_kind_is_proposed_the_first_that_is_named() -> None:
    listed = (Beside("postgres:16", "ci.yml"), Beside("postgres", "compose.yml"))
    tree = replace(TREE, beside=(*listed, Beside("redis", "compose.yml")))

    plan = with_services(Plan((Package(),)), tree)

    assert plan.services == (
        Needed(ServiceKind.POSTGRES, "ci.yml"),
        Needed(ServiceKind.REDIS, "compose.yml", installed=False),
    )


def test_the_variables_that_lead_to_a_service_in_ci_lead_to_ours() -> None:
    variables = (
        ("DATABASE_URL", "postgres://u:p@localhost/x"),
        ("TEST_DB", "postgresql+asyncpg://u:p@localhost:5432/x"),
        ("REDIS_URL", "redis://localhost"),
        ("CELERY_BROKER", "redis://localhost:6379/1"),
        ("CI", "1"),
    )
    listed = (Beside("postgres", "ci.yml", variables), Beside("redis", "ci.yml", variables))

    database, cache = needed(replace(TREE, beside=listed))

    assert database.env == (("TEST_DB", f"postgresql+asyncpg{PLACE}"),)
    assert cache.env == (("CELERY_BROKER", "$REDIS_URL"),)


def test_what_is_not_installed_or_not_known_is_told_with_what_to_do() -> None:
    listed = (Beside("redis:7", "ci.yml"), Beside("mysql:8", "ci.yml"))

    said = about_services(replace(TREE, beside=listed))

    absent = "tests seem to need redis (ci.yml), which is not installed here: "
    assert said == (
        f"{absent}apt-get install redis-server, then lockgate init --force",
        "ci.yml also starts mysql:8: where tests need it, start it by [[services]] command",
    )


def test_a_suite_that_needs_docker_is_told_what_to_do_instead() -> None:
    texts = {"requirements.txt": "Testcontainers[postgres]\n", "setup.py": ""}
    started = (Said("docker compose -f x.yml up -d", ".github/workflows/ci.yml"),)

    [library] = about_services(replace(TREE, texts=texts))
    [by_ci] = about_services(replace(TREE, said=started))

    assert library.startswith(
        "tests start containers by Testcontainers (requirements.txt), and the"
    )
    assert "[[services]]" in library
    assert by_ci.startswith("CI starts containers by itself (.github/workflows/ci.yml), and the")
    known = replace(TREE, said=started, beside=(Beside("postgres", "compose.yml"),))
    assert about_services(known) == ()
