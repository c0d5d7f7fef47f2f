"""Which of the user's variables a set-up is given, and what is taken out of them."""

from lockgate.core.layers.inputs import caching, for_base, for_change

ENVIRON = {
    "HTTPS_PROXY": "http://me:secret@proxy.corp:3128",
    "no_proxy": "localhost,.corp",
    "SSL_CERT_FILE": "/etc/corp.pem",
    "HTTP_PROXY": "",
    "PIP_INDEX_URL": "https://me:secret@pypi.corp/simple",
    "PIP_EXTRA_INDEX_URL": "https://a:b@one.corp/ https://c:d@two.corp/",
    "PIP_TARGET": "/somewhere",
    "npm_config_registry": "https://npm.corp/",
    "npm_config__authToken": "secret",
    "CARGO_REGISTRIES_CORP_INDEX": "sparse+https://crates.corp/",
    "CARGO_REGISTRIES_CORP_TOKEN": "secret",
    "GOPROXY": "https://go.corp",
    "AWS_SECRET_ACCESS_KEY": "secret",
}
OPEN = {
    "HTTPS_PROXY": "http://proxy.corp:3128",
    "no_proxy": "localhost,.corp",
    "SSL_CERT_FILE": "/etc/corp.pem",
}


def test_a_change_is_given_proxies_and_certificates_without_logins() -> None:
    assert for_change(ENVIRON) == OPEN


def test_base_is_given_proxies_as_they_are_and_indexes_without_logins() -> None:
    assert for_base(ENVIRON, ()) == OPEN | {
        "HTTPS_PROXY": "http://me:secret@proxy.corp:3128",
        "PIP_INDEX_URL": "https://pypi.corp/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.corp/ https://two.corp/",
        "npm_config_registry": "https://npm.corp/",
        "CARGO_REGISTRIES_CORP_INDEX": "sparse+https://crates.corp/",
        "GOPROXY": "https://go.corp",
    }


def test_base_is_given_as_it_is_what_the_configuration_names() -> None:
    given = for_base(ENVIRON, ("PIP_INDEX_URL", "CARGO_REGISTRIES_CORP_TOKEN", "NOT_SET"))

    assert given["PIP_INDEX_URL"] == "https://me:secret@pypi.corp/simple"
    assert given["CARGO_REGISTRIES_CORP_TOKEN"] == "secret"
    assert "NOT_SET" not in given


def test_what_is_kept_is_never_linked_into_what_is_installed() -> None:
    given = caching("/cache", "uv sync")

    assert given["PIP_CACHE_DIR"] == "/cache/pip"
    assert given["UV_LINK_MODE"] == "copy"
    assert given["pnpm_config_package_import_method"] == "copy"


def test_only_pnpm_is_told_what_npm_would_warn_of() -> None:
    for_pnpm, for_npm = (caching("/cache", it) for it in ("pnpm install", "npm ci"))

    assert for_pnpm["npm_config_store_dir"] == for_npm["pnpm_config_store_dir"] == "/cache/pnpm"
    assert for_pnpm["npm_config_package_import_method"] == "copy"
    assert [it for it in for_npm if it.startswith("npm_config_")] == ["npm_config_cache"]
