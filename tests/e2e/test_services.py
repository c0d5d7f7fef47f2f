"""Agents on a project with a database: each has its own, and so has what judges them."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.adapters.sandbox.services import serving
from lockgate.core.model.task import Status
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker
from tests.scenarios.world import git

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(bool(serving.missing("postgres")), reason="needs PostgreSQL's programs"),
]
PYTHON = shlex.quote(sys.executable)
# One seeded row, and the one that each run adds: a second run on the same database would see more.
CHECK = """\
import os, pathlib, time, psycopg

with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
    rows = lambda: db.execute("select count(*) from people").fetchone()[0]
    assert rows() == 1, "this database is not mine alone"
    db.execute("insert into people values ('me')")
    time.sleep(0.3)
    assert rows() == 2, "somebody else writes here"
    for query in sorted(pathlib.Path("queries").glob("*.sql")):
        assert db.execute(query.read_text()).fetchone(), query
    db.execute("delete from people where name = 'me'")
print("checked")
"""
SCHEMA = """\
create table if not exists people (name text primary key);
insert into people values ('Ann') on conflict do nothing;
"""
PREPARE = "cat schema/*.sql | psql -q -v ON_ERROR_STOP=1"
CONFIG = f"""\
[project]
agent = "scripted"
slots = 9
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "{PYTHON} check.py"
attempts = 1
[[services]]
name = "db"
service = "postgres"
prepare = "{PREPARE}"
inputs = ["schema"]
[merge]
mode = "auto"
"""


def checks(branch: str) -> str:
    """In the session; what they say goes with the change."""
    return f'{{ shell = "{PYTHON} check.py > tested-{branch} 2>&1" }}'


SCRIPTS = {
    "names": worker(
        '{ write = "queries/names.sql", text = "select name from people" }',
        checks("names"),
        hands_off("names"),
        COMPLETE,
    ),
    "pets": worker(
        '{ write = "schema/2.sql", text = "create table if not exists pets (name text);" }',
        '{ write = "queries/pets.sql", text = "select count(*) from pets" }',
        f'{{ shell = "{PREPARE}" }}',
        checks("pets"),
        hands_off("pets"),
        COMPLETE,
    ),
}


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    it = Orchestra(tmp_path, config=CONFIG, scripts=SCRIPTS)
    (it.root / "schema").mkdir()
    (it.root / "schema" / "1.sql").write_text(SCHEMA)
    (it.root / "check.py").write_text(CHECK)
    git(it.root, "add", "--all")
    git(it.root, "commit", "--quiet", "--message", "A database")
    yield it
    it.close()


def test_two_agents_at_once_test_on_databases_of_their_own_are_judged_on_others_and_land(
    orchestra,
) -> None:
    tasks = [orchestra.create("names"), orchestra.create("pets")]

    orchestra.up()
    for id in tasks:
        orchestra.until_status(id, Status.DONE)

    assert [orchestra.task(id).failed_attempts for id in tasks] == [0, 0]
    git(orchestra.root, "checkout", "--quiet", "--force", "main")
    for branch in SCRIPTS:
        assert (orchestra.root / "queries" / f"{branch}.sql").exists()
        assert (orchestra.root / f"tested-{branch}").read_text() == "checked\n"
    assert not [it for it in orchestra.left_over() if "postgres" in it]
