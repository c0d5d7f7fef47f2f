"""The commands as users, agents and scripts call them: what they do, print and exit with."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from hashlib import sha256

import click
import pytest
from msgspec.structs import replace

from lockgate.adapters.system import SystemChance
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.faces.cli import output
from lockgate.faces.cli.app import root
from lockgate.faces.cli.app import run as run_in_process
from tests.faces.shell import CONFIG, FAIL, HANDOFF, PASS, Shell, a_shell, commit_config

EVENT_KEYS = ["seq", "time", "task", "type", "prev", "data"]
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


def commands(group=root, path=()):
    """Every command there is, by the words that call it."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield (*path, name), command
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


# --- every command ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [(), *COMMANDS], ids=" ".join)
def test_help_names_every_option(path, capsys):
    command = COMMANDS.get(path, root)

    code = run_in_process([*path, "--help"])

    shown = capsys.readouterr().out
    assert code == 0
    options = (it for it in command.params if isinstance(it, click.Option) and not it.hidden)
    for option in options:
        assert all(name in shown for name in (*option.opts, *option.secondary_opts)), option.opts


# These tell a story as it happens, give the terminal away, or print a shell's script.
GROUPS = {("task",), ("gate",), ("queue",), ("review",), ("step",)}
WITHOUT_FACTS = GROUPS | {
    *(("demo",), ("up",), ("open",), ("shell",), ("takeover",), ("task", "attach")),
    ("completion",),
    ("worker",),
    ("tui",),
    ("web",),
}


@pytest.mark.parametrize("path", [it for it in COMMANDS if it not in WITHOUT_FACTS], ids=" ".join)
def test_every_command_that_prints_facts_takes_json(path):
    assert any("--json" in it.opts for it in COMMANDS[path].params)


READING = (
    ("task", "list"),
    ("task", "show", "ID"),
    ("task", "why", "ID"),
    ("task", "log", "ID"),
    ("task", "update", "ID", "--status", "working"),
    ("task", "update", "ID", "--summary", "Korrigiere die Umleitung – 修复登录"),
    ("task", "cancel", "ID"),
    ("task", "delete", "ID"),
    ("task", "create", "fix-logout", "Fix the logout"),
    ("init", "--force", "--no-commit"),
    (),
)


@pytest.mark.parametrize("argv", READING, ids=" ".join)
def test_with_json_stdout_is_one_document(shell, argv):
    id = shell.create()

    answer = shell.run(*(id if it == "ID" else it for it in argv), "--json")

    assert (answer.code, answer.err) == (0, "")
    assert isinstance(answer.facts, dict | list)
    assert answer.out.count("\n") == 1


@pytest.mark.parametrize("argv", READING, ids=" ".join)
def test_without_json_stdout_is_words_without_an_escape(shell, argv):
    id = shell.create()

    answer = shell.run(*(id if it == "ID" else it for it in argv))

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.strip()
    assert not UNSAFE.search(answer.out)


def test_json_gives_a_task_as_people_spell_it(shell):
    id = shell.create("fix-login", "--priority", "1", "--no-start")

    facts = shell.facts(id)

    assert facts["id"] == id
    assert (facts["branch"], facts["summary"]) == ("fix-login", "Fix the login")
    assert (facts["status"], facts["priority"], facts["auto_start"]) == ("pending", 1, False)
    assert facts["file"] == str(shell.file(id))
    assert facts["sessions"] == []


def test_the_board_is_shown_without_a_command(shell):
    id = shell.create()

    assert shell.did() == shell.did("task", "list")
    assert json.loads(shell.did("--json"))["rows"][0]["id"] == id


def test_the_board_shows_the_tasks_of_where_one_stands_and_all_on_request(
    shell, tmp_path, configured
):
    id = shell.create()
    other = Shell(tmp_path / "other")
    other.home = shell.home
    subprocess.run(["cp", "-r", str(configured), str(other.repo)], check=True)
    another = other.create("elsewhere")

    here, everywhere = shell.did("task", "list"), shell.did("task", "list", "--all")

    assert id in here
    assert another not in here
    assert id in everywhere
    assert another in everywhere


def test_the_board_can_be_asked_for_some_statuses_only(shell):
    waiting, started = shell.create(), shell.create("fix-logout")
    shell.bring(started, Status.AGENT_REVIEW)

    found = json.loads(shell.did("task", "list", "--status", "AGENT_REVIEW", "--json"))["rows"]

    assert [it["id"] for it in found] == [started]
    assert waiting not in shell.did("task", "list", "--status", "agent-review")


def test_the_board_comes_in_pages_that_miss_no_task(shell):
    made = {shell.create(f"fix-{n}") for n in range(5)}
    page = json.loads(shell.did("task", "list", "--limit", "2", "--json"))
    seen = [it["id"] for it in page["rows"]]

    while page["after"]:
        after = ("--after", page["after"])
        page = json.loads(shell.did("task", "list", "--limit", "2", "--json", *after))
        seen += [it["id"] for it in page["rows"]]

    assert len(seen) == 5
    assert set(seen) == made


def test_a_task_waits_for_those_it_depends_on(shell):
    first = shell.create()

    second = shell.create("fix-logout", "--depends-on", first[:9])

    assert shell.facts(second)["depends_on"] == [first]


@pytest.mark.parametrize("text", ["Read docs/login.md first.\n", "Ende – 修复\n### Handoff\nno\n"])
def test_the_context_reaches_task_md_from_a_file_and_from_stdin(shell, tmp_path, text):
    (tmp_path / "context.md").write_text(text, encoding="utf-8")

    by_file = shell.create("fix-login", "--context", str(tmp_path / "context.md"))
    by_stdin = shell.program(
        "task", "create", "fix-x", "Fix x", "--context", "-", stdin=text.encode()
    )

    assert f"## Context\n\n{text}" in shell.file(by_file).read_text(encoding="utf-8")
    assert f"## Context\n\n{text}" in shell.file(by_stdin.out.strip()).read_text(encoding="utf-8")


@pytest.mark.parametrize("argv", [("create", "FIX", "Fix it"), ("import", "FILE")], ids=" ".join)
def test_a_new_id_is_one_that_no_task_has(shell, tmp_path, monkeypatch, argv):
    (tmp_path / "TASK.md").write_text("---\nsummary: Fix it\nbranch: FIX\n---\n", encoding="utf-8")
    suffixes = iter(("aaaa", "aaaa", "aaaa", "bbbb"))
    monkeypatch.setattr(SystemChance, "suffix", lambda _: next(suffixes))
    first = shell.create("fix")

    second = shell.run("task", *(str(tmp_path) if it == "FILE" else it for it in argv))

    assert first == "fix-aaaa"
    assert (second.code, second.out, second.err) == (0, "fix-bbbb\n", "")


def test_the_agent_is_the_projects_or_the_one_asked_for(shell):
    usual, asked = shell.create(), shell.create("fix-logout", "--agent", "codex")

    assert (shell.facts(usual)["agent"], shell.facts(asked)["agent"]) == ("scripted", "codex")


def test_the_program_prints_the_id_of_a_new_task_and_nothing_else(shell):
    answer = shell.program("task", "create", "fix-login", "Fix the login")

    assert re.fullmatch(r"fix-login-[0-9a-f]{4}\n", answer.out)
    assert (answer.code, answer.err) == (0, "")


def test_the_version_is_told(shell):
    assert re.fullmatch(r"lockgate, version \d+\.\d+.*\n", shell.did("--version"))


# --- exit codes ---------------------------------------------------------------------------------

REFUSED = (
    (("task", "show", "nosuch"), 1),
    (("task", "cancel", "nosuch"), 1),
    (("resume", "nosuch"), 1),
    (("events", "nosuch"), 1),
    (("task", "import", "nosuch"), 1),
    (("task", "create", "a b", "Fix it"), 1),
    (("task", "list", "--status", "nosuch"), 2),
    (("task", "update", "x"), 2),
    (("task", "nosuch"), 2),
    (("nosuch",), 2),
    (("task", "create"), 2),
    (("init", "--formula", "nosuch"), 2),
    (("init", "--agent", "nosuch", "--force"), 2),
    (("events", "--since", "9" * 30), 2),
    (("events", "--since", "-1"), 2),
    (("task", "list", "--limit", "0"), 2),
)


@pytest.mark.parametrize(
    ("argv", "code"), REFUSED, ids=lambda it: " ".join(it) if isinstance(it, tuple) else str(it)
)
def test_a_refusal_has_three_parts_and_the_same_exit_code_in_json(shell, argv, code):
    said = shell.run(*argv)
    document = shell.run(*argv, "--json")

    assert (said.code, document.code) == (code, code)
    assert said.why
    error = document.facts["error"]
    assert list(error) == ["what", "why", "fix"]
    assert all(error.values())
    assert error["what"] in said.err


@pytest.mark.parametrize(
    "argv",
    [("--json", "task", "show", "ID"), ("task", "--json", "show", "ID"), ("--json", "status")],
    ids=" ".join,
)
def test_json_may_stand_before_the_command(shell, argv):
    id = shell.create()
    before = [id if it == "ID" else it for it in argv]
    after = [*(it for it in before if it != "--json"), "--json"]

    assert shell.run(*before).facts == shell.run(*after).facts
    assert shell.program(*before).facts == shell.run(*after).facts


def test_json_alone_is_the_boards(shell):
    id = shell.create()

    assert [it["id"] for it in shell.program("--json").facts["rows"]] == [id]


def test_a_command_that_has_no_json_says_so_wherever_that_stands(shell):
    for argv in (("--json", "up"), ("up", "--json")):
        answer = shell.run(*argv)
        assert answer.code == 2
        assert "--json" in answer.facts["error"]["why"]


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (("tsk", "list"), "'task'"),
        (("task", "crate"), "'create'"),
        (("create", "x", "y"), "'task create'"),
        (("task", "list", "--statsu", "working"), "'--status'"),
        (("task", "list", "--status", "wroking"), "'working'"),
        (("task", "create", "x", "y", "--agent", "cloude"), "'claude'"),
        (("task", "show", "fix-lgoin"), "'fix-login-"),
        (("task", "show", "login"), "'fix-login-"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else it,
)
def test_what_was_mistyped_is_told_with_what_may_be_meant(shell, argv, meant):
    shell.create("fix-login")

    said = shell.run(*argv).why.replace(
        "mean --status", "mean '--status'"
    )  # an older click's words
    assert f"Did you mean {meant}" in said


@pytest.mark.parametrize("argv", [("xyzzy",), ("task", "show", "xyzzy")], ids=" ".join)
def test_nothing_is_suggested_for_what_is_like_nothing(shell, argv):
    shell.create("fix-login")

    assert "Did you mean" not in shell.run(*argv).why


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_calls_us(shell, kind):
    assert f"_LOCKGATE_COMPLETE={kind}_complete" in shell.program("completion", kind).out


@pytest.mark.measured
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["lockgate", "ta"], ["takeover", "task"]),
        (["lockgate", "task", "wh"], ["why"]),
        (["lockgate", "task", "why", "fix"], ["ID"]),
        (["lockgate", "approve", ""], ["ID"]),
        (["lockgate", "task", "show", "--js"], ["--json"]),
        (["lockgate", "completion", "z"], ["zsh"]),
    ],
    ids=" ".join,
)
def test_a_shell_is_offered_commands_options_and_ids(shell, words, offered):
    id = shell.create("fix-login")
    asked = {
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "_LOCKGATE_COMPLETE": "bash_complete",
    }

    said = shell.program(env=asked).out.splitlines()

    assert said == [f"plain,{id if it == 'ID' else it}" for it in offered]


def test_a_session_is_offered_its_own_task_alone(shell):
    id, _other = shell.create("fix-login"), shell.create("fix-logout")
    shell.bring(id, Status.WORKING)
    asked = {
        "COMP_WORDS": "lockgate task show fix",
        "COMP_CWORD": "3",
        "_LOCKGATE_COMPLETE": "bash_complete",
    }

    said = shell.program(env=asked, token=shell.begin(id, Role.WORKER)).out.splitlines()

    assert said == [f"plain,{id}"]


def test_outside_a_repository_no_id_is_offered_and_nothing_is_said(shell, tmp_path):
    asked = {
        "COMP_WORDS": "lockgate approve ",
        "COMP_CWORD": "2",
        "_LOCKGATE_COMPLETE": "bash_complete",
    }

    answer = shell.program(env=asked, cwd=tmp_path)

    assert (answer.out.strip(), answer.err) == ("", "")


@pytest.mark.parametrize("argv", [("task", "list"), ("task", "list", "--json")], ids=" ".join)
def test_a_bug_of_ours_exits_3_and_leaves_a_log(shell, monkeypatch, argv):
    def broken(*_):
        raise RuntimeError("no such luck\x1b[31m")

    monkeypatch.setattr(output, "open_app", broken)

    answer = shell.run(*argv)

    log = next((shell.home / "logs").iterdir())
    assert answer.code == 3
    assert f"report it with {log}" in answer.err
    assert "\x1b" not in answer.out + answer.err
    assert "RuntimeError: no such luck" in log.read_text(encoding="utf-8")
    assert "--json" not in argv or "bug" in answer.facts["error"]["why"]


def test_a_bug_whose_log_cannot_be_written_is_told_on_the_screen(shell, monkeypatch):
    def broken(*_):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(output, "open_app", broken)
    shell.home.write_text("a file in the way", encoding="utf-8")

    answer = shell.run("task", "list")

    assert answer.code == 3
    assert "Traceback" in answer.err
    assert "report it with the text above" in answer.err


@pytest.mark.measured
def test_following_ends_with_130_when_interrupted(orchestrated):
    shell = orchestrated
    id = shell.create("fix-login", "--no-start")
    argv = [sys.executable, "-m", "lockgate", "events", "--follow", "--json"]
    following = subprocess.Popen(
        argv,
        cwd=shell.repo,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert following.stdout
    first = following.stdout.readline()
    shell.program("task", "cancel", id)
    second = following.stdout.readline()

    following.send_signal(signal.SIGINT)
    rest, err = following.communicate(timeout=20)

    assert following.returncode == 130
    assert [json.loads(line)["type"] for line in (first, second)] == [
        "task.created",
        "status.changed",
    ]
    assert b"Traceback" not in err
    assert rest == b""


@pytest.mark.measured
def test_a_reader_that_goes_away_is_no_error(shell):
    for n in range(3):
        shell.create(f"fix-{n}")
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "lockgate", "events"],
        cwd=shell.repo,
        env=shell.environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")


# --- events -------------------------------------------------------------------------------------


def test_events_are_numbered_without_gaps_and_each_holds_the_hash_of_the_line_before(shell):
    first, second = shell.create(), shell.create("fix-logout")
    shell.bring(first, Status.DONE)
    shell.bring(second, Status.STUCK)

    answer = shell.program("events", "--json")

    lines = answer.out.splitlines()
    events = [json.loads(line) for line in lines]
    assert all(list(it) == EVENT_KEYS for it in events)
    assert [it["seq"] for it in events] == list(range(1, len(events) + 1))
    assert events[0]["prev"] == "0" * 64
    for line, after in zip(lines, events[1:], strict=False):
        assert after["prev"] == sha256(line.encode()).hexdigest()


def test_events_are_those_of_a_task_or_those_since_a_number(shell):
    first, second = shell.create(), shell.create("fix-logout")
    shell.bring(first, Status.WORKING)

    of_second = [json.loads(it) for it in shell.did("events", second, "--json").splitlines()]
    since = [json.loads(it) for it in shell.did("events", "--since", "2", "--json").splitlines()]

    assert [(it["task"], it["type"]) for it in of_second] == [(second, "task.created")]
    assert [it["seq"] for it in since] == list(range(3, 3 + len(since)))
    assert since[0]["task"] == first


def test_the_log_of_a_task_is_its_events_and_its_history_file_has_the_same(shell):
    id = shell.create()
    shell.bring(id, Status.AGENT_REVIEW)

    log = json.loads(shell.did("task", "log", id, "--json"))

    kept = (shell.home / "tasks" / id / "history.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in kept] == log
    assert [it["data"]["to"] for it in log if it["type"] == "status.changed"] == [
        "WORKING",
        "AGENT_REVIEW",
    ]
    assert all(str(it["seq"]) in shell.did("task", "log", id) for it in log)


# --- init ---------------------------------------------------------------------------------------

SAMPLES = {
    "pytest": ({"pyproject.toml": "[project]\nname='x'\n", "tests/test_x.py": ""}, "pytest -q"),
    "npm": ({"package.json": '{"scripts": {"test": "node --test"}}'}, "npm run test"),
    "go": ({"go.mod": "module x\n", "x_test.go": ""}, "go test -json ./..."),
    "cargo": ({"Cargo.toml": "[package]\nname='x'\n"}, "cargo test"),
    "make": ({"Makefile": "test:\n\ttrue\n"}, "make test"),
    "nothing": ({}, "not found"),
    "nonsense": ({"package.json": "{", "pyproject.toml": "[[["}, "not found"),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_init_writes_a_configuration_that_loads_from_what_the_repository_shows(plain, sample):
    files, command = SAMPLES[sample]
    for name, text in files.items():
        (plain.repo / name).parent.mkdir(exist_ok=True)
        (plain.repo / name).write_text(text, encoding="utf-8")
    plain.git("add", "--all")
    plain.git("commit", "--quiet", "--allow-empty", "--message", "Files")

    made = json.loads(plain.did("init", "--agent", "scripted", "--baseline", "0", "--json"))

    assert command in made["found"]["test"]
    assert (made["base"], made["branch"]) == ("main", "main")
    plain.bring(plain.create(), Status.WORKING)
    assert plain.git("log", "-1", "--format=%s", "--name-only").split("\n\n") == [
        "Add Lockgate's configuration",
        ".lockgate/config.toml\n",
    ]


@pytest.mark.parametrize(
    "formula", ["plain", "solo", "code-review", "security-audit", "quick-review", "none"]
)
def test_init_takes_every_formula_and_every_agent(plain, formula):
    plain.did("init", "--formula", formula, "--agent", "codex")

    assert plain.facts(plain.create())["agent"] == "codex"


def test_init_prints_the_schema_and_does_no_more(plain):
    before = plain.traces()

    schema = json.loads(plain.did("init", "--schema"))

    assert set(schema["properties"]) >= {"project", "gates", "limits", "merge"}
    assert plain.traces() == before


def test_init_refuses_a_second_time_unless_forced(plain):
    plain.did("init")
    (plain.repo / ".lockgate/config.toml").write_text("# mine\n", encoding="utf-8")
    before = plain.traces()

    again = plain.run("init")

    assert "it is there already" in again.why
    assert plain.traces() == before
    plain.did("init", "--force", "--agent", "codex")
    assert "codex" in plain.git("show", "HEAD:.lockgate/config.toml")


def test_init_that_has_nothing_to_change_is_no_failure(plain):
    plain.did("init")

    answer = plain.run("init", "--force")

    assert answer.code == 0, answer
    assert plain.git("log", "--format=%s", "-2").splitlines()[1] == "A small application"


def test_init_writes_through_no_link_out_of_the_repository(plain, tmp_path):
    (tmp_path / "outside").mkdir()
    (plain.repo / ".lockgate").symlink_to(tmp_path / "outside")

    answer = plain.run("init")

    assert answer.code == 1
    assert list((tmp_path / "outside").iterdir()) == []


def test_init_can_leave_the_commit_to_the_user(plain):
    head = plain.git("rev-parse", "HEAD")

    said = plain.did("init", "--no-commit")

    assert "commit it on main" in said
    assert (plain.repo / ".lockgate/config.toml").is_file()
    assert plain.git("rev-parse", "HEAD") == head


def test_init_commits_that_one_file_whatever_else_is_staged_or_dirty(plain):
    (plain.repo / "staged.py").write_text("staged\n", encoding="utf-8")
    plain.git("add", "staged.py")
    (plain.repo / "app.py").write_text("dirty\n", encoding="utf-8")
    (plain.repo / "untracked.py").write_text("new\n", encoding="utf-8")

    plain.did("init")

    assert plain.git("show", "--name-only", "--format=").split() == [".lockgate/config.toml"]
    assert plain.git("status", "--short").splitlines() == [
        " M app.py",
        "A  staged.py",
        "?? untracked.py",
    ]


def test_init_on_another_branch_says_where_it_will_count(plain):
    plain.git("checkout", "--quiet", "-b", "set-up")

    said = plain.did("init")

    assert "committed on set-up; it counts once it is on main" in said


def test_init_in_a_subdirectory_writes_at_the_top(plain):
    (plain.repo / "deep").mkdir()

    plain.did("init", cwd=plain.repo / "deep")

    assert (plain.repo / ".lockgate/config.toml").is_file()


@pytest.mark.parametrize("branch", ["main", "trunk"])
def test_init_makes_the_first_commit_of_an_empty_repository(tmp_path, branch):
    shell = Shell(tmp_path / "empty")
    shell.repo.mkdir()
    shell.git("init", "--quiet", f"--initial-branch={branch}")
    shell.git("config", "user.name", "Test")
    shell.git("config", "user.email", "test@localhost")

    made = json.loads(shell.did("init", "--json"))

    assert (made["base"], made["branch"]) == (branch, branch)
    assert shell.create().startswith("fix-login-")


def test_init_on_a_detached_head_commits_nothing_that_would_be_lost(plain):
    plain.git("checkout", "--quiet", "--detach")
    plain.did("task", "list")
    before = plain.traces()

    answer = plain.run("init")

    assert "HEAD is detached" in answer.why
    assert plain.traces() == before
    plain.did("init", "--no-commit")


def test_init_on_a_detached_head_with_no_usual_base_names_no_empty_one(plain):
    plain.git("branch", "-m", "main", "trunk")
    plain.git("checkout", "--quiet", "--detach")

    answer = plain.run("init", "--no-commit")

    assert "HEAD is detached" in answer.why
    assert not (plain.repo / ".lockgate").exists()


# --- the walk -----------------------------------------------------------------------------------


def test_a_change_that_passed_its_gates_is_led_to_the_queue_and_not_around_it(shell):
    shell.git("checkout", "--quiet", "-b", "unmerged")
    (shell.repo / "work.txt").write_text("work\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "Work")
    shell.git("checkout", "--quiet", "main")
    id = shell.create("unmerged")
    shell.bring(id, Status.REVIEWING)
    approve = f"lockgate approve {id}"

    told, facts = shell.did("task", "why", id), shell.run("task", "why", id, "--json").facts

    assert f"approve it for landing: {approve}\n" in told
    assert facts["next"]["command"] == approve
    assert "merge it" not in told
    assert approve in shell.run("task", "update", id, "--status", "done").why


@pytest.mark.measured
@pytest.mark.req("R77", "R78", "R79", "R84")
def test_a_task_walks_from_idea_to_landed_by_real_commands_only(plain):
    assert plain.program("init", "--formula", "none").code == 0
    commit_config(plain, CONFIG)
    plain.git("branch", "walk", "main")
    plain.git("checkout", "--quiet", "walk")
    (plain.repo / "walk.py").write_text("walk\n", encoding="utf-8")
    plain.git("add", "--all")
    plain.git("commit", "--quiet", "--message", "Walk")
    plain.git("checkout", "--quiet", "main")
    id = plain.program("task", "create", "walk", "Walk the whole way").out.strip()

    def moved(status):
        return plain.run("task", "update", id, "--status", status)

    assert "possible" in plain.did("task", "why", id)
    assert moved("working").out == f"{id} is working\n"
    assert "no '## Handoff' section" in plain.program("task", "complete", id).why
    assert "not yet: TASK.md has no '## Handoff' section" in plain.did("task", "why", id)
    plain.write(id, HANDOFF)
    assert plain.program("task", "complete", id).out == f"{id} is agent-review\n"
    assert "no '## Review' section" in moved("reviewing").why
    plain.write(id, PASS)
    assert moved("reviewing").out == f"{id} is reviewing\n"
    assert "branch walk is not in the target branch" in moved("done").why
    plain.git("merge", "--quiet", "--no-ff", "--message", "Merge", "walk")
    done = plain.program("task", "update", id, "--status", "done")
    assert done.out == f"{id} is done\n"
    assert "It has ended" in plain.did("task", "why", id)


@pytest.mark.req("R81")
@pytest.mark.parametrize(
    "argv", [("complete",), ("update", "--status", "agent-review")], ids=" ".join
)
def test_complete_is_the_move_to_agent_review(shell, argv):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    without = shell.run("task", argv[0], id, *argv[1:])
    shell.write(id, HANDOFF)

    answer = shell.run("task", argv[0], id, *argv[1:], "--json")

    assert "task update" in without.why or "TASK.md" in without.why
    assert (answer.code, answer.facts["status"]) == (0, "agent-review")
    assert answer.facts["phase"]["name"] == "Evaluating"
    assert [it["effect"] for it in shell.facts(id)["pending"]] == ["PrepareWorkspace", "SpawnAgent"]


@pytest.mark.req("R81")
def test_the_id_may_be_left_out_in_a_directory_with_a_task_md(shell, tmp_path):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.write(id, HANDOFF)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "TASK.md").write_text(f"---\nid: {id}\n---\n", encoding="utf-8")

    answer = shell.program("task", "complete", cwd=tmp_path / "work")

    assert answer.out == f"{id} is agent-review\n"


@pytest.mark.req("R81")
def test_the_id_may_be_left_out_in_a_session(shell):
    id, other = shell.create(), shell.create("fix-logout")
    shell.bring(id, Status.WORKING)
    shell.write(id, HANDOFF)
    token = shell.begin(id, Role.WORKER)

    answer = shell.program("task", "complete", token=token, cwd=shell.place)

    assert answer.out == f"{id} is agent-review\n"
    assert shell.status(other) is Status.PENDING


LEFT_OUT = {
    "no file": None,
    "no frontmatter": "## Handoff\n",
    "no id": "---\nsummary: x\n---\n",
    "an id of another kind": "---\nid: 7\n---\n",
    "broken": "---\nid: [\n---\n",
    "a part of an id": "---\nid: fix\n---\n",
    "an empty id": "---\nid: ''\n---\n",
    "an unknown id": "---\nid: nosuch-0000\n---\n",
    "a path": "---\nid: ../../etc\n---\n",
}


@pytest.mark.parametrize("text", LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_task_md_that_names_no_task_names_none(shell, tmp_path, text):
    shell.create()
    (tmp_path / "work").mkdir()
    if text is not None:
        (tmp_path / "work" / "TASK.md").write_text(text, encoding="utf-8")
    before = shell.traces()

    answer = shell.run("task", "update", "--status", "cancelled", cwd=tmp_path / "work")

    assert "was not found" in answer.why or "no task was found" in answer.why
    assert shell.traces() == before


@pytest.mark.parametrize(
    "argv", [("cancel", ""), ("delete", ""), ("update", "", "--status", "cancelled")]
)
def test_an_empty_name_is_no_name_even_where_a_task_md_lies(shell, tmp_path, argv):
    id = shell.create()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "TASK.md").write_text(f"---\nid: {id}\n---\n", encoding="utf-8")
    before = shell.traces()

    answer = shell.run("task", *argv, cwd=tmp_path / "work")

    assert "task '' was not found" in answer.why
    assert shell.traces() == before


def test_a_task_is_named_by_any_unique_beginning(shell):
    login, _ = shell.create("fix-login"), shell.create("fix-logout")

    assert shell.facts("fix-logi")["id"] == login
    assert shell.facts(login)["id"] == login


def test_an_ambiguous_beginning_is_refused_with_the_candidates(shell):
    login, logout = shell.create("fix-login"), shell.create("fix-logout")

    answer = shell.run("task", "cancel", "fix-lo")

    assert login in answer.why
    assert logout in answer.why
    assert shell.status(login) is shell.status(logout) is Status.PENDING


@pytest.mark.req("R99")
def test_crashes_are_counted_and_a_move_sets_the_count_back(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    shell.dies(id)
    counted = shell.facts(id)["crash_count"]
    shell.write(id, HANDOFF)

    shell.did("task", "complete", id)

    assert counted == 1
    assert shell.facts(id)["crash_count"] == 0
    assert "crash_count: 0\n" in shell.file(id).read_text(encoding="utf-8")


def test_a_failed_review_goes_back_and_the_same_handoff_does_not_count_again(shell):
    id = shell.create()
    shell.bring(id, Status.AGENT_REVIEW)
    shell.write(id, FAIL)

    shell.did("task", "update", id, "--status", "working")
    again = shell.run("task", "complete", id)

    assert "has not changed since it last moved this task" in again.why
    shell.rewrite(id, "DONE: the redirect", "DONE: the redirect, without the loop")
    assert shell.run("task", "complete", id).code == 0


def test_a_forced_move_is_a_humans_and_its_reason_is_kept(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)

    shell.did(
        "task", "update", id, "--status", "agent-review", "--force", "--reason", "it is trivial"
    )

    last = json.loads(shell.did("task", "log", id, "--json"))[-1]
    assert shell.status(id) is Status.AGENT_REVIEW
    assert last["type"] == "move.forced"
    assert last["data"]["reason"] == "it is trivial"


def test_status_and_summary_change_in_one_command_or_not_at_all(shell):
    id = shell.create()
    both = ("task", "update", id, "--status", "working", "--summary")
    before = shell.traces()

    assert "summary is empty" in shell.run(*both, "  ").why
    assert shell.traces() == before
    shell.did(*both, "Fix it well")

    assert (shell.status(id), shell.facts(id)["summary"]) == (Status.WORKING, "Fix it well")
    assert "summary: Fix it well\n" in shell.file(id).read_text(encoding="utf-8")


def test_a_directive_is_kept_for_the_next_agent(shell):
    id = shell.create()

    shell.did("task", "update", id, "--status", "working", "--directive", "Mind the cookies")

    assert shell.facts(id)["directive"] == "Mind the cookies"
    assert "Mind the cookies" in shell.did("task", "show", id)


def test_an_edited_frontmatter_is_shown_and_the_next_move_puts_it_back(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.write(id, HANDOFF)
    shell.rewrite(id, "status: working", "status: done")

    shown = shell.did("task", "show", id)
    shell.did("task", "complete", id)

    assert "frontmatter was edited" in shown
    assert "status: agent-review\n" in shell.file(id).read_text(encoding="utf-8")
    types = [it["type"] for it in json.loads(shell.did("task", "log", id, "--json"))]
    assert "artifact.tampered" in types


# --- resume, delete, import ---------------------------------------------------------------------


@pytest.mark.req("R188")
def test_a_paused_task_is_resumed_with_a_directive_and_counts_from_nought(shell):
    id = shell.create()
    shell.bring(id, Status.PAUSED_FOR_INTERVENTION)
    paused = shell.facts(id)

    answer = shell.program("resume", id[:8], "--directive", "Measure first", "--json")

    assert (paused["status"], paused["failed_attempts"]) == ("paused-for-intervention", 5)
    assert (answer.facts["status"], answer.facts["failed_attempts"]) == ("pending", 0)
    assert (answer.facts["directive"], answer.facts["auto_start"]) == ("Measure first", True)
    assert shell.did("task", "log", id).splitlines()[-1].count("Measure first") == 1


@pytest.mark.parametrize(
    "status", [it for it in Status if it is not Status.PAUSED_FOR_INTERVENTION]
)
def test_only_a_paused_task_is_resumed(shell, status):
    id = shell.create()
    shell.bring(id, status)
    before = shell.traces()

    answer = shell.run("resume", id)

    assert "only a paused task is resumed" in answer.why
    assert shell.traces() == before


@pytest.mark.parametrize("status", [Status.PENDING, Status.DONE, Status.CANCELLED])
def test_a_task_that_nobody_works_on_is_deleted_and_its_files_and_events_are_kept(shell, status):
    id = shell.create()
    shell.bring(id, status)
    text = shell.file(id).read_bytes()
    events = len(shell.did("events").splitlines())

    shell.did("task", "delete", id)

    assert "was not found" in shell.run("task", "show", id).why
    assert id not in shell.did("task", "list")
    assert (shell.home / "deleted" / f"{id}-1" / "TASK.md").read_bytes() == text
    assert len(shell.did("events").splitlines()) == events + 1


@pytest.mark.parametrize(
    "status", [it for it in Status if it not in {Status.PENDING, Status.DONE, Status.CANCELLED}]
)
def test_a_task_that_somebody_works_on_is_not_deleted(shell, status):
    id = shell.create()
    shell.bring(id, status)
    before = shell.traces()

    answer = shell.run("task", "delete", id)

    assert f"lockgate task cancel {id}" in answer.why
    assert shell.traces() == before


FOREIGN = """\
---
id: old-task-1
summary: An old task
branch: old-branch
status: {status}
review_round: 1
---
## Context

Written before there was a crash count.
"""


@pytest.mark.req("R97", "R102")
@pytest.mark.parametrize("status", Status)
def test_a_foreign_task_md_is_imported_as_it_is_and_a_missing_crash_count_reads_0(
    shell, tmp_path, status
):
    file = tmp_path / "TASK.md"
    file.write_text(FOREIGN.format(status=status), encoding="utf-8")

    answer = shell.run("task", "import", str(file), "--json")

    assert answer.code == 0, answer
    assert (answer.facts["id"], answer.facts["status"]) == ("old-task-1", status)
    assert (answer.facts["crash_count"], answer.facts["review_round"]) == (0, 1)
    assert file.read_text(encoding="utf-8") == FOREIGN.format(status=status)
    text = shell.file("old-task-1").read_text(encoding="utf-8")
    assert "crash_count: 0\n" in text
    assert text.endswith("Written before there was a crash count.\n")
    assert json.loads(shell.did("task", "list", "--json"))["rows"][0]["id"] == "old-task-1"


@pytest.mark.req("R102")
def test_an_imported_task_moves_by_the_same_rules(shell, tmp_path):
    (tmp_path / "TASK.md").write_text(FOREIGN.format(status="working"), encoding="utf-8")
    id = shell.did("task", "import", str(tmp_path)).strip()

    refused = shell.run("task", "complete", id)
    shell.write(id, HANDOFF)

    assert "no '## Handoff' section" in refused.why
    assert shell.run("task", "complete", id).code == 0


def test_an_import_whose_id_is_taken_gets_another(shell, tmp_path):
    (tmp_path / "TASK.md").write_text(FOREIGN.format(status="pending"), encoding="utf-8")

    first = shell.did("task", "import", str(tmp_path)).strip()
    shell.did("task", "cancel", first)
    second = shell.did("task", "import", str(tmp_path / "TASK.md")).strip()

    assert first == "old-task-1"
    assert re.fullmatch(r"old-branch-[0-9a-f]{4}", second)


# --- what needs a human -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.STUCK, Status.WORKING])
def test_status_shows_every_task_that_needs_a_human(shell, status):
    first = shell.create("first", "--no-start")
    app = shell.app()
    task = replace(app.store.load(first), status=status, dead=status is Status.WORKING)
    for n in range(60):
        app.store.create(Decision(replace(task, id=TaskId(f"t-{n}"), branch=f"b-{n}")))
    app.store.close()

    told = shell.did("status")
    facts = json.loads(shell.did("status", "--json"))

    assert "needs you: 60" in told
    assert {it["task"] for it in facts["needs"]} == {f"t-{n}" for n in range(60)}
    assert all(f" t-{n} " in told for n in range(60))


# --- a branch of its own ------------------------------------------------------------------------


def _asks_for(shell, tmp_path, command, branch):
    file = tmp_path / "TASK.md"
    file.write_text(f"---\nsummary: Fix it\nbranch: {branch}\n---\n", encoding="utf-8")
    match command:
        case "create":
            return shell.run("task", "create", branch, "Fix it")
        case "run":
            return shell.run("run", "Fix it", "--branch", branch, "--no-wait")
        case _:
            return shell.run("task", "import", str(file))


@pytest.mark.parametrize("command", ["create", "run", "import"])
def test_no_task_gets_a_branch_that_changes_land_on(shell, tmp_path, command):
    shell.git("switch", "--quiet", "--create", "feature")

    answer = _asks_for(shell, tmp_path, command, "main")

    assert "changes land on main, and only after their gates" in answer.why
    assert json.loads(shell.did("task", "list", "--json"))["rows"] == []


@pytest.mark.parametrize("command", ["create", "run", "import"])
def test_no_task_gets_the_default_branch_of_a_remote(shell, tmp_path, command):
    shell.git("update-ref", "refs/remotes/up/stream/trunk/v2", "main")
    shell.git("symbolic-ref", "refs/remotes/up/stream/HEAD", "refs/remotes/up/stream/trunk/v2")

    answer = _asks_for(shell, tmp_path, command, "trunk/v2")

    assert "changes land on trunk/v2" in answer.why


def test_neither_the_base_nor_the_branch_that_names_the_base_is_a_tasks(shell, tmp_path):
    commit_config(shell, CONFIG.replace("[project]", '[project]\nbase = "develop"'))
    shell.git("branch", "develop")

    for branch in ("main", "develop"):
        assert f"changes land on {branch}" in _asks_for(shell, tmp_path, "create", branch).why


@pytest.mark.parametrize("command", ["create", "run", "import"])
def test_no_task_gets_a_branch_that_a_live_task_has(shell, tmp_path, command):
    first = shell.create("mine")

    refused = _asks_for(shell, tmp_path, command, "mine")
    shell.did("task", "cancel", first)

    assert f"task {first} has the branch mine" in refused.why
    assert _asks_for(shell, tmp_path, command, "mine").code == 0


# --- what reaches a terminal --------------------------------------------------------------------

EVIL = "\x1b[31mred\x1b]52;c;ZXZpbA==\x07 \x9b2J \u202eover\u2066ride\u200e\u061c\ufeff"
EVIL_YAML = "".join(it if it.isascii() and it.isprintable() else f"\\u{ord(it):04x}" for it in EVIL)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory, configured):
    """A task with such characters in its directive, its events and its TASK.md."""
    shell = a_shell(tmp_path_factory.mktemp("spoilt"), configured)
    id = shell.create()
    shell.did("task", "update", id, "--status", "working", "--directive", EVIL, "--reason", EVIL)
    shell.rewrite(id, "summary: Fix the login", f'summary: "{EVIL}"\nunknown: {EVIL}')
    shell.did("task", "update", id, "--status", "stuck", "--reason", EVIL)
    shell.rewrite(id, "summary: Fix the login", f"summary: {EVIL}")
    return shell, id


def on_a_terminal(shell, *argv):
    """What the real program writes where stdout and stderr are one terminal."""
    ours, theirs = pty.openpty()
    env = shell.environment(TERM="xterm-256color")
    command = [sys.executable, "-m", "lockgate", *argv]
    running = subprocess.Popen(command, cwd=shell.repo, env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # Linux says so when the other side is closed
        pass
    os.close(ours)
    running.wait(timeout=20)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "argv",
    [
        ("task", "list"),
        ("task", "list", "--json"),
        ("task", "show", "ID"),
        ("task", "why", "ID"),
        ("task", "log", "ID"),
        ("events",),
        ("events", "--json"),
        ("task", "update", "ID", "--status", EVIL),
        ("task", "show", EVIL, "--json"),
        ("task", "import", EVIL),
        ("task", "create", "fix", EVIL),
        ("task", "create", "fix", "x", "--agent", EVIL),
        ("task", EVIL),
    ],
    ids=lambda it: " ".join(it).replace(EVIL, "EVIL"),
)
def test_nothing_that_moves_a_cursor_reaches_a_terminal(spoilt, argv):
    shell, id = spoilt

    seen = on_a_terminal(shell, *(id if it == "ID" else it for it in argv))

    assert seen.strip()
    assert not UNSAFE.search(seen), ascii(UNSAFE.findall(seen))


@pytest.mark.parametrize("field", ["summary", "branch", "id", "status", "iteration"])
def test_an_imported_file_puts_nothing_that_moves_a_cursor_on_the_screen(shell, tmp_path, field):
    fields = {"id": "evil-1", "summary": "Fine", "branch": "fix", "status": "pending"}
    lines = "".join(f'{name}: "{value}"\n' for name, value in (fields | {field: EVIL_YAML}).items())
    (tmp_path / "TASK.md").write_text(f"---\n{lines}---\n{EVIL}\n", encoding="utf-8")

    answer = shell.run("task", "import", str(tmp_path))
    listed, log = shell.did("task", "list"), shell.did("events")

    assert answer.code == (0 if field == "id" else 1)
    assert not UNSAFE.search(answer.out + answer.err + listed + log)


def test_a_pipe_gets_the_lines_that_were_hashed_even_with_such_characters(shell):
    id = shell.create()
    shell.did("task", "update", id, "--status", "working", "--reason", "right\u202eleft")
    shell.did("task", "update", id, "--status", "stuck")

    lines = shell.program("events", "--json").out.splitlines()

    assert "\u202e" in lines[1]
    assert json.loads(lines[2])["prev"] == sha256(lines[1].encode()).hexdigest()


def test_a_command_takes_less_than_two_seconds_of_the_processor(shell):
    id = shell.create()
    before = os.times()

    shell.program("task", "show", id)

    after = os.times()
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < 2
