"""`lockgate init` on small projects of ours: the real program, the real sandbox, to green."""

import shutil
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")

NUMBERS = """\
export function add(a, b) {
  return a + b;
}
"""
NUMBERS_TEST = """\
import assert from "node:assert";
import test from "node:test";
import { add } from "../src/numbers.mjs";

test("adds", () => assert.equal(add(1, 2), 3));
test("adds nothing", () => assert.equal(add(1, 0), 1));
"""
PACKAGE = '{"name": "numbers", "type": "module", "scripts": {"test": "node --test"}}\n'

GREET = """\
greet() {
  echo "hello $1"
}
"""
GREET_TEST = '. ./greet.sh\ntest "$(greet you)" = "hello you"\n'
MAKEFILE = "test:\n\tsh check.sh\n"


def project(place: Path, files: dict[str, str]) -> Shell:
    shell = Shell(place)
    for name, text in files.items():
        path = shell.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shell.git("init", "--quiet", "--initial-branch=main")
    shell.git("config", "user.name", "Test")
    shell.git("config", "user.email", "test@localhost")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "A project")
    return shell


def broken(shell: Shell, name: str, before: str, after: str) -> None:
    """A branch with one fault in one file."""
    shell.git("checkout", "--quiet", "-b", "fault")
    file = shell.repo / name
    file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    shell.git("commit", "--quiet", "--all", "--message", "A fault")


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_a_javascript_project_is_green_after_init_alone_and_red_on_a_fault(tmp_path: Path) -> None:
    files = {
        "package.json": PACKAGE,
        "src/numbers.mjs": NUMBERS,
        "test/numbers.test.mjs": NUMBERS_TEST,
    }
    shell = project(tmp_path, files)

    made = shell.program("init", "--json").facts

    assert made["ready"] is True, made
    assert made["next"] == 'next: lockgate run "what to do"'
    assert (made["baseline"][0]["tests"], made["baseline"][0]["broke"]) == (2, "src/numbers.mjs")
    assert shell.run("gate", "run").code == 0
    broken(shell, "src/numbers.mjs", "a + b", "a - b")
    assert shell.run("gate", "run").code == 1


def test_a_monorepo_with_a_red_package_is_held_to_the_others(tmp_path: Path) -> None:
    files = {
        "api/Makefile": MAKEFILE,
        "api/go.mod": "",
        "api/check.sh": GREET_TEST,
        "api/greet.sh": GREET,
        "web/Makefile": MAKEFILE,
        "web/go.mod": "",
        "web/check.sh": GREET_TEST,
        "web/greet.sh": GREET.replace("hello", "good bye"),
        "README.md": "Two packages.\n",
    }
    shell = project(tmp_path, files)

    said = shell.run("init")

    assert said.out.splitlines()[-1] == 'next: lockgate run "what to do"', said
    config = shell.git("show", "main:.lockgate/config.toml")
    assert 'name = "tests-api"' in config
    assert 'paths = ["api/**"]' in config
    assert "# Left out: tests-web, `make test`: " in config
    assert shell.run("gate", "run").code == 0
    broken(shell, "api/greet.sh", "hello", "hey")
    assert shell.run("gate", "run").code == 1
