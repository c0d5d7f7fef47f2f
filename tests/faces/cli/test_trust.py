"""Trust on first use: nothing of a repository runs before its user agrees to what it asks for."""

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.discovery.found import Tree
from lockgate.core.model.task import Role, Status
from lockgate.errors import Untrusted
from lockgate.faces.cli.look.follow import SLOW_START, Follower
from lockgate.services.setup.init import Initialiser, Wanted
from tests.faces.cli.test_agents import Seat
from tests.faces.shell import CONFIG, Answer, Shell, a_shell, commit_config

BARE = """
[[gates.list]]
name = "tests"
type = "command"
command = "echo was here >> EVIDENCE"

[sandbox]
level = "none"
"""
SENTENCE = "run its tests, its set-up and its agents without a sandbox"


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """What the repository's command leaves on the host."""
    return tmp_path / "evidence"


@pytest.fixture
def cloned(shell: Shell, evidence: Path) -> Shell:
    """A repository whose user has agreed to nothing yet."""
    return clone(shell, CONFIG + BARE.replace("EVIDENCE", str(evidence)))


def clone(shell: Shell, config: str) -> Shell:
    commit_config(shell, config)
    shell.did("trust", "--forget")
    return shell


def digest_of(shell: Shell) -> str:
    return str(json.loads(shell.did("trust", "--show", "--json"))["digest"])


def refuses(answer: Answer) -> bool:
    return answer.code == 1 and SENTENCE in answer.err and "lockgate trust" in answer.err


# --- nothing runs -------------------------------------------------------------------------------


def test_gate_run_in_a_fresh_clone_runs_nothing_until_its_user_agrees(cloned, evidence):
    before = cloned.program("gate", "run")
    digest = digest_of(cloned)

    agreed = cloned.program("trust", "--yes", digest)
    after = cloned.program("gate", "run")

    assert refuses(before), before
    assert f"LOCKGATE_TRUST={digest}" in before.why
    assert (agreed.code, agreed.err) == (0, "")
    assert after.code == 0, after
    assert evidence.read_text() == "was here\n"


def test_run_and_start_refuse_and_leave_the_task_where_it_is(cloned, evidence):
    run = cloned.program("run", "Do it", "--agent", "scripted")
    id = cloned.create()
    start = cloned.run("task", "start", id)

    assert refuses(run), run
    assert refuses(start), start
    assert cloned.status(id) is Status.PENDING
    tried = cloned.run("doctor", "--try", "scripted")
    assert (tried.code, SENTENCE in tried.out) == (1, True)
    assert not evidence.exists()


LOOKS = (
    ("gate", "list"),
    ("gate", "explain", "tests"),
    ("task", "list"),
    ("task", "show", "ID"),
    ("task", "why", "ID"),
    ("status",),
    ("events",),
    ("trust", "--show"),
)


@pytest.mark.parametrize("argv", LOOKS, ids=" ".join)
def test_a_command_that_only_looks_goes_on(cloned, evidence, argv):
    id = cloned.create()

    assert cloned.run(*(id if it == "ID" else it for it in argv)).code == 0
    assert not evidence.exists()


def test_what_was_refused_is_something_that_needs_a_human(cloned):
    id = cloned.create()
    assert "needs you: nothing" in cloned.did("status")
    cloned.run("task", "start", id)

    status, board = cloned.did("status"), cloned.did("task", "list")
    facts = json.loads(cloned.did("status", "--json"))

    assert "needs you: 1" in status
    assert all(SENTENCE in it and "lockgate trust" in it for it in (status, board))
    assert [it["kind"] for it in facts["needs"]] == ["trust"]
    cloned.did("trust", "--yes", digest_of(cloned))
    assert "needs you: nothing" in cloned.did("status")
    assert SENTENCE not in cloned.did("task", "list")


def test_the_orchestrator_starts_nothing_of_it_and_ends_by_itself(cloned, evidence):
    id = cloned.create()

    up = cloned.program("up", "--once")

    assert up.code == 0, up
    assert cloned.status(id) is Status.PENDING
    assert "needs you: 1" in cloned.did("status")
    assert cloned.app().store.sessions(id) == ()
    assert not evidence.exists()


# --- the yes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["DIGEST", "other, DIGEST"])
def test_ci_agrees_by_a_variable_that_names_the_digest(cloned, evidence, said):
    digest = digest_of(cloned)

    wrong = cloned.program("gate", "run", env={"LOCKGATE_TRUST": digest[:-1]})
    every = [cloned.program("gate", "run", env={"LOCKGATE_TRUST": it}) for it in ("*", "1", "all")]
    right = cloned.program("gate", "run", env={"LOCKGATE_TRUST": said.replace("DIGEST", digest)})

    assert all(refuses(it) for it in (wrong, *every))
    assert right.code == 0, right
    assert evidence.read_text() == "was here\n"


def test_it_is_asked_again_only_when_more_is_asked_for(cloned: Shell) -> None:
    cloned.did("trust", "--yes", digest_of(cloned))
    text = (cloned.repo / ".lockgate" / "config.toml").read_text()

    def then(config: str) -> Answer:
        (cloned.repo / ".lockgate" / "config.toml").write_text(config)
        cloned.git("commit", "--quiet", "--all", "--message", "Configure again")
        return cloned.program("gate", "run")

    assert then(text + "\n# a comment\n").code == 0
    more = then(text + '\n[merge]\nmode = "auto"\n')
    assert more.code == 1
    assert "to land changes by itself" in more.err
    assert SENTENCE not in more.err
    assert then(text).code == 0
    assert SENTENCE not in then(text.replace('level = "none"', 'level = "auto"')).err
    assert then(text).code == 0


def test_another_repository_in_the_same_place_has_no_yes(cloned):
    cloned.git("remote", "add", "origin", "https://github.com/acme/x.git")
    cloned.did("trust", "--yes", digest_of(cloned))
    assert cloned.program("gate", "run").code == 0
    cloned.git("remote", "set-url", "origin", "https://evil.example/x/y.git")

    assert refuses(cloned.program("gate", "run"))


@pytest.mark.measured
def test_the_users_own_file_may_name_origins(cloned):
    file = cloned.home / "trust.toml"
    file.write_text('origins = ["github.com/acme/*"]\n')
    cloned.git("remote", "add", "origin", "git@github.com:acme-evil/x.git")
    evil = cloned.program("gate", "run")
    cloned.git("remote", "set-url", "origin", "git@github.com:acme/x.git")

    assert refuses(evil)
    assert cloned.program("gate", "run").code == 0
    file.write_text('origins = ["*"]\n')
    assert "names no host" in cloned.program("gate", "run").why


@pytest.mark.measured
def test_the_question_is_asked_at_a_terminal_and_nothing_else_is_a_yes(cloned):
    piped = cloned.program("trust", stdin=b"y\n")
    no = Seat(cloned, "trust")
    no.until(b"Agree?")
    no.type(b"\n")
    refused = no.end()
    yes = Seat(cloned, "trust")
    yes.until(b"Agree?")
    yes.type(b"y\n")

    assert f"lockgate trust --yes {digest_of(cloned)}" in piped.why
    assert refused == 1
    assert SENTENCE.encode() in no.seen
    assert yes.end() == 0, yes.seen
    assert json.loads(cloned.did("trust", "--show", "--json"))["trusted"] is True


def test_a_digest_of_something_else_is_no_yes(cloned):
    assert "is not the digest" in cloned.run("trust", "--yes", "0" * 32).why
    assert refuses(cloned.program("gate", "run"))


def test_an_agent_cannot_agree(cloned):
    id = cloned.create()
    digest = digest_of(cloned)
    cloned.did("trust", "--yes", digest)
    cloned.bring(id, Status.WORKING)
    token = cloned.begin(id, Role.WORKER)
    cloned.did("trust", "--forget")

    assert "a worker may not do that" in cloned.run("trust", "--yes", digest, token=token).why
    assert refuses(cloned.program("gate", "run"))


def test_a_repository_that_asks_for_nothing_is_never_asked_about(shell):
    said = shell.run("trust")
    run = shell.run("gate", "run")

    assert (said.code, "asks for nothing beyond the sandbox" in said.out) == (0, True)
    assert "trust" not in run.err
    assert not (shell.home / "trust").exists()


def test_what_the_users_own_init_writes_is_agreed_to(plain):
    text = CONFIG + '\n[sandbox]\nlevel = "none"\n'
    app = plain.app()
    project = app.projects.here(plain.repo)
    init = Initialiser(
        app.projects.repository,
        lambda *_: Tree(paths=frozenset()),
        lambda *_: text,
        app.configuration,
    )
    wanted = Wanted(formula="", agent="")
    site = init.site(project, wanted, app.caller)

    init.init(project, init.propose(project, wanted, site), site, wanted, None)

    assert app.configuration.allowed_of(project).sandbox.level == "none"
    app.store.close()


# --- a human's yes to a change --------------------------------------------------------------------


def test_a_change_of_the_file_that_a_human_agreed_to_is_agreed_to_once_it_landed(shell):
    app = shell.app()
    project = app.projects.here(shell.repo)
    before = shell.git("rev-parse", "HEAD").strip()
    commit_config(shell, CONFIG + '\n[merge]\nmode = "auto"\n')
    after = shell.git("rev-parse", "HEAD").strip()
    shell.did("trust", "--forget")
    task = app.store.load(shell.create())

    def landed(**fields: object) -> None:
        by = [_with(task, protected=(".lockgate/config.toml",), **fields)]
        app.configuration.landed(project, before, after, by)

    landed()
    with pytest.raises(Untrusted):
        app.configuration.allowed_of(project)
    landed(to_land=True)

    assert app.configuration.allowed_of(project).merge.mode == "auto"
    app.store.close()


def _with(task: object, **fields: object) -> object:
    return replace(task, **fields)  # type: ignore[type-var]  # a task, as the caller has it


# --- a program of the repository ------------------------------------------------------------------

OWN = """
[agents.mine]
command = ["./agent.sh", "{prompt}"]
env = ["AWS_SECRET_ACCESS_KEY"]
"""


def test_the_yes_holds_for_the_program_as_it_is(shell):
    script = shell.repo / "agent.sh"
    script.write_text("#!/bin/sh\n")
    clone(shell, CONFIG + OWN + '\n[sandbox]\nlevel = "none"\n')
    first = shell.run("trust", "--show")
    shell.did("trust", "--yes", digest_of(shell))
    script.write_text("#!/bin/sh\ncurl evil\n")
    shell.git("commit", "--quiet", "--all", "--message", "Improve the agent")

    again = shell.run("run", "Do it", "--agent", "mine")

    assert "to its agent mine" in first.out
    assert "of this repository outside the sandbox" in again.why
    assert "AWS_SECRET_ACCESS_KEY" not in again.why


@pytest.mark.parametrize("word", ["././agent.sh", "sub/../agent.sh", "REPO/agent.sh"])
def test_the_content_counts_by_whatever_name_the_program_is_called(shell, word):
    named = word.replace("REPO", str(shell.repo))
    script = shell.repo / "agent.sh"
    script.write_text("#!/bin/sh\n")
    clone(shell, CONFIG + OWN.replace("./agent.sh", named) + '\n[sandbox]\nlevel = "none"\n')
    shell.agree()
    before = digest_of(shell)
    script.write_text("#!/bin/sh\ncurl evil\n")
    shell.git("commit", "--quiet", "--all", "--message", "Improve the agent")

    assert digest_of(shell) != before
    assert json.loads(shell.did("trust", "--show", "--json"))["trusted"] is False


def test_what_was_agreed_to_is_for_its_owner_alone_and_a_damaged_file_grants_nothing(cloned):
    cloned.did("trust", "--yes", digest_of(cloned))
    (file,) = (cloned.home / "trust").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    file.write_text("{}")

    broken = cloned.program("gate", "run")

    assert "lockgate trust --forget" in broken.why
    cloned.did("trust", "--forget")
    assert refuses(cloned.program("gate", "run"))


def test_a_damaged_file_does_not_stop_a_command_that_only_looks(cloned):
    cloned.run("task", "start", cloned.create())
    for file in (cloned.home / "trust").iterdir():
        file.write_text("[]")

    for argv in (("status",), ("task", "list")):
        answer = cloned.run(*argv)

        assert answer.code == 0, answer
        assert "lockgate trust --forget" in answer.out


def test_whoever_follows_a_task_is_told_that_it_waits_for_a_yes(cloned, capsys):
    id = cloned.create()
    cloned.run("task", "start", id)
    app = cloned.app()

    follower = Follower(app, id, lambda _: None)
    follower._look_around(app.store.load(id), SLOW_START + 1)

    assert SENTENCE in capsys.readouterr().err
    app.store.close()


def test_a_copied_home_of_another_repository_does_not_help(cloned, tmp_path):
    cloned.did("trust", "--yes", digest_of(cloned))
    other = a_shell(tmp_path / "other", cloned.repo)
    shutil.copytree(cloned.home, other.home)

    assert refuses(other.program("gate", "run"))
