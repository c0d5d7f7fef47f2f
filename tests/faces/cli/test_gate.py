"""`lockgate gate`: the gates on HEAD with no task, and the gates as they are configured."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lockgate.adapters.sandbox import trouble
from lockgate.core.model.task import Status
from tests.faces.shell import HANDOFF, Shell, commit_config, files_of

WHY_NOT = trouble()
needs_sandbox = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")
HEAD = '[project]\nagent = "scripted"\n[gates]\nformula = "none"\n'
BARE = '[sandbox]\nlevel = "none"\n'
REVIEW = '[[gates.list]]\nname = "review"\ntype = "parallel_review"\ndimensions = ["general"]\n'
HUMAN = '[[gates.list]]\nname = "human"\ntype = "human"\n'


def command(name: str, run: str, *more: str) -> str:
    lines = ["[[gates.list]]", f'name = "{name}"', 'type = "command"', f"command = '''{run}'''"]
    return "\n".join((*lines, *more)) + "\n"


TESTS = command("tests", "grep -q hello app.py", "attempts = 1")
LINT = command("lint", "test -f app.py", "attempts = 1")


def edit(shell: Shell, name: str, text: str) -> None:
    (shell.repo / name).parent.mkdir(exist_ok=True)
    (shell.repo / name).write_text(text, encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", f"Change {name}")


def on_a_branch(shell: Shell, config: str) -> Shell:
    commit_config(shell, config)
    shell.git("checkout", "--quiet", "-b", "feature")
    return shell


def results(shell: Shell, *argv: str, code: int = 0) -> dict[str, str]:
    answer = shell.run("gate", "run", "--json", *argv)
    assert answer.code == code, answer
    return {it["name"]: it["result"] for it in answer.facts["gates"]}


# --- gate run -----------------------------------------------------------------------------------


@needs_sandbox
@pytest.mark.req("R127")
def test_a_commit_that_its_gates_pass_ends_with_nought_and_leaves_nothing(shell: Shell) -> None:
    on_a_branch(shell, HEAD + TESTS + REVIEW + HUMAN)
    before = files_of(shell.repo)

    answer = shell.run("gate", "run")

    assert answer.code == 0, answer
    assert "✓ tests  passed" in answer.out
    assert "bubblewrap" in answer.out
    assert "review  not judged" in answer.out
    assert "human  not judged" in answer.out
    assert "\x1b" not in answer.out + answer.err
    assert files_of(shell.repo) == before
    assert not shell.home.exists()


@pytest.mark.req("R127")
def test_a_commit_that_a_gate_fails_ends_with_one_and_says_what_was_found(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + TESTS + LINT)
    edit(shell, "app.py", "print('bye')\n")

    answer = shell.run("gate", "run")

    assert answer.code == 1
    assert "✗ tests  failed" in answer.out
    assert "none" in answer.out
    assert "P1 `grep -q hello app.py`" in answer.out
    assert "lint  not reached" in answer.out


def test_a_gate_that_cannot_judge_is_no_pass(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + command("tests", "no-such-program", "attempts = 1"))

    assert results(shell, code=1) == {"tests": "broken"}


def test_the_rules_are_those_of_the_base_and_not_of_the_change(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + TESTS)
    edit(shell, "app.py", "print('bye')\n")
    edit(shell, ".lockgate/config.toml", HEAD + BARE + command("tests", "true"))

    answer = shell.run("gate", "run", "--json")

    assert answer.code == 1
    assert answer.facts["protected"] == [".lockgate/config.toml"]
    assert answer.facts["base_commit"] == shell.git("rev-parse", "main").strip()


def test_a_base_that_is_named_brings_its_own_rules(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + command("tests", "false", "attempts = 1"))
    edit(shell, ".lockgate/config.toml", HEAD + BARE + TESTS)

    assert results(shell, code=1) == {"tests": "failed"}
    assert results(shell, "--base", "HEAD") == {"tests": "passed"}


def test_on_the_base_branch_itself_its_own_commit_has_the_rules(shell: Shell) -> None:
    commit_config(shell, HEAD + BARE + TESTS)

    assert results(shell) == {"tests": "passed"}


# --- the base is never what is checked out -------------------------------------------------------

CHEAT = HEAD + BARE + command("tests", "true", "attempts = 1")


def a_build(shell: Shell, *, default: str = "develop") -> Path:
    """A detached checkout as build servers make it; its own rules let everything pass."""
    commit_config(shell, HEAD + BARE + TESTS)
    shell.git("branch", "--move", default)
    shell.git("checkout", "--quiet", "-b", "feature")
    edit(shell, "app.py", "print('bye')\n")
    edit(shell, ".lockgate/config.toml", CHEAT)
    there = shell.place / "build"
    shell.git("init", "--quiet", "--initial-branch=nothing", str(there))
    for argv in (
        ("remote", "add", "origin", str(shell.repo)),
        ("fetch", "--quiet", "origin"),
        ("checkout", "--quiet", "--detach", "origin/feature"),
    ):
        shell.git("-C", str(there), *argv)
    shell.agree("--base", f"origin/{default}", cwd=there)
    return there


@pytest.mark.parametrize("argv", [("run",), ("list",), ("check",), ("explain", "tests")])
def test_a_detached_head_with_no_known_base_is_refused_with_the_command_to_run(
    shell: Shell, argv
) -> None:
    there = a_build(shell)

    answer = shell.run("gate", *argv, cwd=there)

    assert answer.code == 2
    assert "the base branch is not known" in answer.why
    assert "--base" in answer.why


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GITHUB_BASE_REF", "develop"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "develop"),
        ("SYSTEM_PULLREQUEST_TARGETBRANCH", "refs/heads/develop"),
    ],
)
def test_in_ci_the_rules_are_those_of_the_branch_that_the_change_goes_to(
    shell: Shell, variable, value
) -> None:
    there = a_build(shell)

    answer = shell.run("gate", "run", "--json", cwd=there, env={variable: value})

    assert answer.code == 1, answer
    assert answer.facts["rules"].startswith("origin/develop (")
    assert [it["result"] for it in answer.facts["gates"]] == ["failed"]


def test_in_ci_a_target_branch_that_was_not_fetched_is_an_error_and_nothing_else_is_tried(
    shell: Shell,
) -> None:
    there = a_build(shell)
    shell.git("-C", str(there), "branch", "main")

    answer = shell.run("gate", "run", cwd=there, env={"GITHUB_BASE_REF": "release"})

    assert answer.code == 2
    assert "GITHUB_BASE_REF" in answer.why
    assert "git fetch origin +refs/heads/release:refs/remotes/origin/release" in answer.why


def test_in_ci_a_branch_that_is_only_called_like_the_base_does_not_bring_its_rules(
    shell: Shell,
) -> None:
    there = a_build(shell, default="main")
    shell.git("-C", str(there), "checkout", "--quiet", "-b", "main", "--no-track")

    answer = shell.run("gate", "run", "--json", cwd=there, env={"CIRCLECI": "true"})

    assert answer.code == 1, answer
    assert answer.facts["rules"].startswith("origin/main (")


def test_ci_in_a_persons_own_shell_changes_nothing(shell: Shell) -> None:
    there = a_build(shell, default="main")
    shell.git("-C", str(there), "branch", "main", "origin/main", "--no-track")

    answer = shell.run("gate", "run", "--json", cwd=there, env={"CI": "true"})

    assert answer.facts["rules"].startswith("main ("), answer


def test_the_remotes_head_is_the_base_whatever_is_checked_out(shell: Shell) -> None:
    there = a_build(shell)
    shell.git("-C", str(there), "remote", "set-head", "origin", "develop")

    for argv in (("checkout", "--quiet", "--detach"), ("checkout", "--quiet", "-b", "mine")):
        shell.git("-C", str(there), *argv)
        answer = shell.run("gate", "run", "--json", cwd=there)

        assert answer.code == 1, answer
        assert answer.facts["rules"].startswith("origin/develop (")


def test_the_base_that_init_was_told_stays_the_base_where_no_remote_names_one(
    shell: Shell,
) -> None:
    shell.git("branch", "--move", "trunk")
    assert shell.run("init", "--baseline", "0", "--formula", "none", "--force").code == 0
    edit(shell, ".lockgate/config.toml", HEAD + BARE + TESTS)
    shell.agree()
    shell.git("checkout", "--quiet", "-b", "feature")
    edit(shell, "app.py", "print('bye')\n")
    edit(shell, ".lockgate/config.toml", CHEAT)

    for argv in (("checkout", "--quiet", "feature"), ("checkout", "--quiet", "--detach")):
        shell.git(*argv)
        answer = shell.run("gate", "run", "--json")

        assert answer.code == 1, answer
        assert answer.facts["rules"].startswith("trunk (")


def test_a_branch_beside_another_is_not_judged_by_its_own_rules(shell: Shell) -> None:
    commit_config(shell, HEAD + BARE + TESTS)
    shell.git("branch", "--move", "trunk")
    others = shell.git("branch", "--format=%(refname:short)").split()
    shell.git("branch", "--quiet", "-D", *(it for it in others if it != "trunk"))
    assert results(shell) == {"tests": "passed"}, "the only branch is the base"

    shell.git("checkout", "--quiet", "-b", "feature")

    assert "the base branch is not known" in shell.run("gate", "run").why
    assert results(shell, "--base", "trunk") == {"tests": "passed"}


def test_the_base_that_the_rules_name_may_be_the_remotes(shell: Shell) -> None:
    commit_config(shell, HEAD.replace("[project]", '[project]\nbase = "develop"') + BARE + TESTS)
    shell.git("branch", "develop")
    there = shell.place / "clone"
    shell.git("clone", "--quiet", str(shell.repo), str(there))
    shell.agree(cwd=there)

    answer = shell.run("gate", "run", "--json", cwd=there)

    assert answer.code == 0, answer
    assert answer.facts["rules"].startswith("origin/develop (")


def test_a_shallow_clone_as_build_servers_make_it_is_judged(shell: Shell) -> None:
    commit_config(shell, HEAD + BARE + TESTS)
    edit(shell, "more.txt", "more\n")
    there = shell.place / "clone"
    shell.git("clone", "--quiet", "--depth=1", f"file://{shell.repo}", str(there))
    shell.agree(cwd=there)

    answer = shell.run("gate", "run", cwd=there)

    assert answer.code == 0, answer


def test_a_linked_work_tree_is_judged_at_its_own_head(shell: Shell) -> None:
    commit_config(shell, HEAD + BARE + TESTS)
    there = shell.place / "linked"
    shell.git("worktree", "add", "--quiet", "--detach", str(there))
    (there / "app.py").write_text("print('bye')\n")
    shell.git("-C", str(there), "commit", "--quiet", "--all", "--message", "Say bye")

    assert shell.run("gate", "run").code == 0
    assert shell.run("gate", "run", cwd=there).code == 1


def test_edits_that_are_not_committed_are_not_judged_and_that_is_said(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + TESTS)
    (shell.repo / "app.py").write_text("print('bye')\n", encoding="utf-8")
    (shell.repo / "new.py").write_text("", encoding="utf-8")

    answer = shell.run("gate", "run")

    assert answer.code == 0
    assert "edits that are not committed were not checked; files: 2" in answer.out
    assert (shell.repo / "app.py").read_text(encoding="utf-8") == "print('bye')\n"


@pytest.mark.req("R151")
def test_a_when_that_does_not_hold_skips_its_gate(shell: Shell) -> None:
    docs = "when = \"change.paths.exists(p, p.startsWith('docs/'))\""
    on_a_branch(shell, HEAD + BARE + TESTS + command("docs", "false", "attempts = 1", docs))

    assert results(shell) == {"tests": "passed", "docs": "skipped"}

    edit(shell, "docs/page.md", "page\n")
    assert results(shell, code=1) == {"tests": "passed", "docs": "failed"}


def test_a_pass_after_a_failure_is_told_as_flaky(shell: Shell, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    flaky = command("tests", f"test -f {mark} || {{ touch {mark}; exit 1; }}", "attempts = 2")
    on_a_branch(shell, HEAD + BARE + "[limits]\ncall_base_delay_ms = 1\n" + flaky)

    answer = shell.run("gate", "run")

    assert answer.code == 0, answer
    assert "FLAKY" in answer.out
    assert "2 attempts" in answer.out


@pytest.mark.req("R126")
def test_gates_that_are_not_serial_are_all_judged_though_one_fails(shell: Shell) -> None:
    both = command("a", "false", "serial = false", "attempts = 1")
    both += command("b", "true", "serial = false")
    on_a_branch(shell, HEAD + BARE + both + LINT)

    assert results(shell, code=1) == {"a": "failed", "b": "passed", "lint": "not reached"}


@pytest.mark.parametrize("level", ["none", pytest.param("auto", marks=needs_sandbox)])
def test_what_one_gate_does_to_its_tree_no_other_sees(shell: Shell, level: str) -> None:
    spoils = command("spoils", "echo bye > app.py; rm -rf .lockgate; touch new; true")
    clean = command("clean", "test ! -e new && test -d .lockgate", "attempts = 1")
    on_a_branch(shell, HEAD + f'[sandbox]\nlevel = "{level}"\n' + spoils + TESTS + clean)

    assert set(results(shell).values()) == {"passed"}


def test_one_gate_can_be_asked_for_by_name(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + command("slow", "false") + LINT)

    assert results(shell, "--gate", "lint") == {"lint": "passed", "slow": "not judged"}


def test_where_no_gate_could_be_judged_nothing_has_passed(shell: Shell) -> None:
    on_a_branch(shell, HEAD + REVIEW)

    answer = shell.run("gate", "run")

    assert answer.code == 1
    assert "no gate could be run, so this does not count as a pass" in answer.out


def test_a_report_for_build_servers_has_one_case_a_gate(shell: Shell, tmp_path: Path) -> None:
    both = command("a", "echo '<&>'; false", "serial = false", "attempts = 1")
    skipped = command("s", "true", "serial = false", 'when = "task.priority == 9"')
    broken = command("x", "no-such-program", "serial = false", "attempts = 1")
    on_a_branch(
        shell, HEAD + BARE + both + command("b", "true", "serial = false") + skipped + broken
    )

    shell.run("gate", "run", "--junit", str(tmp_path / "report.xml"))

    cases = ET.parse(tmp_path / "report.xml").getroot().iter("testcase")  # noqa: S314 - our own
    found = {it.get("name"): [inner.tag for inner in it] for it in cases}
    assert found == {"a": ["failure"], "b": [], "s": ["skipped"], "x": ["error"]}


def test_a_report_that_cannot_be_written_is_said(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + LINT)

    answer = shell.run("gate", "run", "--junit", "/dev/null/report.xml")

    assert answer.code == 1
    assert "was not written" in answer.err


@pytest.mark.parametrize("argv", [(), ("--json",)])
def test_where_base_has_no_configuration_it_says_how_to_get_one(
    plain: Shell, argv: tuple[str, ...]
) -> None:
    answer = plain.run("gate", "run", *argv)

    assert answer.code == 2
    assert "lockgate init" in answer.err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--gate", "nope"), "no gate is called 'nope'"),
        (("--base", "nope"), "no revision 'nope'"),
        (("--base", "--help"), "no revision '--help'"),
    ],
)
def test_what_is_not_there_is_wrong_usage(shell: Shell, argv: tuple[str, ...], says: str) -> None:
    commit_config(shell, HEAD + LINT)

    answer = shell.run("gate", "run", *argv)

    assert answer.code == 2
    assert says in answer.err


def test_a_configuration_with_a_mistake_is_named_by_line(shell: Shell) -> None:
    commit_config(shell, HEAD + 'nope = "x"\n')

    answer = shell.run("gate", "run")

    assert answer.code == 2
    assert "line 5" in answer.err
    assert "nope" in answer.err


def test_outside_of_git_and_before_the_first_commit_it_says_so(
    plain: Shell, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    outside = plain.run("gate", "run", cwd=empty)
    plain.git("init", "--quiet", str(empty))
    before = plain.run("gate", "run", cwd=empty)

    assert "not inside a git repository" in outside.err
    assert "no commit yet" in before.err
    assert (outside.code, before.code) == (1, 1)


@pytest.mark.parametrize("level", ["none", pytest.param("auto", marks=needs_sandbox)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_that_it_started(
    shell: Shell, level: str, number: int, tmp_path: Path
) -> None:
    mark = f"3{os.getpid() % 1000:03}.{time.time_ns() % 10**6}"  # seconds that nobody else sleeps
    box = f'[sandbox]\nlevel = "{level}"\n'
    commit_config(shell, HEAD + box + command("tests", f"sleep {mark} & sleep {mark}"))
    process = subprocess.Popen(
        [sys.executable, "-m", "lockgate", "gate", "run"],
        cwd=shell.repo,
        env=shell.environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while len(_sleepers(mark)) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(number)

        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
    assert _sleepers(mark) == []
    assert [it.name for it in tmp_path.iterdir() if "throw-away" in it.name] == []


def _sleepers(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            found.append(entry.parent.name)
    return found


@needs_sandbox
def test_a_set_up_is_kept_in_the_home_that_is_there(shell: Shell) -> None:
    env = '[env]\nsetup = "date +%N > stamp"\ninputs = ["app.py"]\n'
    commit_config(
        shell, HEAD + env + command("tests", "test -s stamp && cat stamp; false", "attempts = 1")
    )
    shell.create()

    said = [shell.run("gate", "run").out.splitlines()[1] for _ in range(2)]

    assert said[0] == said[1]
    assert len(list((shell.home / "layers").iterdir())) == 1
    assert list(shell.home.glob(".lockgate-throw-away-*")) == []


# --- gate list, check, explain ------------------------------------------------------------------


def test_the_gates_are_listed_in_order_with_their_waves(shell: Shell) -> None:
    both = command("a", "true", "serial = false") + command("b", "true", "serial = false")
    commit_config(shell, HEAD + LINT + both + REVIEW)

    text = shell.did("gate", "list")
    facts = shell.run("gate", "list", "--json").facts["gates"]

    assert [(it["name"], it["wave"]) for it in facts] == [
        ("lint", 1),
        ("a", 2),
        ("b", 2),
        ("review", 2),
    ]
    assert text.splitlines()[0].split() == ["WAVE", "NAME", "KIND", "ON", "WHEN", "RUNS"]
    assert "reviewers: general" in text


def test_a_task_lists_the_gates_it_was_started_with_and_what_they_said(shell: Shell) -> None:
    task = shell.create()
    fresh = shell.did("gate", "list", task)
    shell.bring(task, Status.WORKING)
    commit_config(shell, HEAD + LINT)
    shell.write(task, HANDOFF)

    listed = shell.run("gate", "list", task, "--json").facts["gates"]

    assert [it["name"] for it in listed] == ["review"]
    assert listed[0]["last"] is None
    assert "review" in fresh


def test_where_there_are_no_gates_the_list_says_so(shell: Shell) -> None:
    commit_config(shell, HEAD)

    assert shell.did("gate", "list") == "there are no gates\n"


def test_check_tells_what_always_judges_from_what_sometimes_does(shell: Shell) -> None:
    some = command("docs", "test -d docs", 'when = "task.priority == 1"')
    later = command("deep", "pytest", 'on = ["train"]')
    commit_config(shell, HEAD + TESTS + some + later)

    text = shell.did("gate", "check")

    assert "every change: tests" in text
    assert "some changes: docs, when task.priority == 1" in text
    assert "no change: deep" in text


HOLES = {
    "none": (HEAD, "no gate that runs a command"),
    "reviews": (HEAD + REVIEW, "no gate that runs a command"),
    "when": (HEAD + command("t", "pytest", 'when = "task.priority == 1"'), "each has a `when`"),
    "masked": (HEAD + command("t", "pytest || true"), "gate t cannot fail"),
}


@pytest.mark.parametrize(("config", "says"), HOLES.values(), ids=HOLES)
def test_check_fails_where_a_change_could_land_past_every_command(
    shell: Shell, config: str, says: str
) -> None:
    commit_config(shell, config)

    answer = shell.run("gate", "check")

    assert answer.code == 1
    assert says in answer.out
    assert shell.run("gate", "check", "--json").facts["hole"] in answer.out


def test_check_warns_of_a_command_that_hides_its_failures(shell: Shell) -> None:
    commit_config(shell, HEAD + LINT + command("t", "pytest | tee log"))

    answer = shell.run("gate", "check")

    assert answer.code == 0
    assert "warning: gate t cannot fail" in answer.out


def test_a_configuration_with_a_mistake_fails_every_look_at_it_with_two(shell: Shell) -> None:
    commit_config(shell, "[gates]\nformula = 'nope'\n")

    for argv in (("list",), ("check",), ("explain", "tests")):
        answer = shell.run("gate", *argv)
        assert answer.code == 2
        assert "line 2" in answer.err


@pytest.mark.parametrize("kind", ["command", "differential", "parallel", "multipass", "human"])
def test_every_kind_of_gate_is_explained(shell: Shell, kind: str) -> None:
    gates = {
        "command": command(
            "it", "pytest", "fail_fast = true", 'exclusive = "db"', 'needs = ["gpu"]'
        ),
        "differential": command("it", "pytest", "attempts = 1").replace(
            '"command"', '"differential"'
        ),
        "parallel": REVIEW.replace('"review"', '"it"'),
        "multipass": '[[gates.list]]\nname = "it"\ntype = "multipass_review"\n',
        "human": HUMAN.replace('name = "human"', 'name = "it"'),
    }
    commit_config(shell, HEAD + ("" if kind == "command" else BARE) + gates[kind])

    facts = shell.run("gate", "explain", "it", "--json").facts
    text = shell.did("gate", "explain", "it")

    for part in ("does", "applies", "passes", "fails", "waits", "breaks"):
        assert facts["explained"][part] in text


def test_a_gate_that_is_not_there_is_not_explained(shell: Shell) -> None:
    answer = shell.run("gate", "explain", "nope")

    assert answer.code == 1
    assert "there are: review" in answer.err
