"""`lockgate doctor` and `lockgate auth`: what is there, and how agents log in."""

import json
import sqlite3
import stat
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from lockgate.adapters.sandbox.bubblewrap import uplink
from lockgate.adapters.sandbox.launch import scoping
from lockgate.adapters.system import version_of
from lockgate.adapters.user_files import StoredCredentials
from lockgate.core.config.settings import Service, ServiceKind, Settings
from lockgate.core.model.task import Role, Status
from lockgate.services.setup.doctor import Checkup
from tests.faces.cli.test_agents import Seat
from tests.faces.cli.test_run import without
from tests.faces.shell import CONFIG, Answer, Shell, commit_config

needs_sandbox = pytest.mark.skipif(trouble() is not None, reason=f"needs a sandbox: {trouble()}")


def parts(answer: Answer) -> dict[str, dict[str, str]]:
    return {part["name"]: part for part in answer.facts["parts"]}


def doctor(shell: Shell, *argv: str, **more: str) -> Answer:
    return shell.run("doctor", *argv, "--json", env=more)


# --- what is there ------------------------------------------------------------------------------


@needs_sandbox
def test_a_machine_that_has_all_is_ready_and_each_part_is_named(shell):
    shell.create()

    answer = doctor(shell)
    said = shell.run("doctor")

    found = parts(answer)
    assert (answer.code, answer.facts["ready"], answer.facts["tried"]) == (0, True, None)
    assert found["git"]["found"] == version_of("git")
    assert "tried and works" in found["sandbox"]["found"]
    assert found["database"]["found"] == "reachable, and its event log is unchanged"
    assert found["orchestrator"]["found"] == "not running"
    assert str(shell.home) in found["home"]["found"]
    assert {f"agent {it}" for it in ("claude", "codex", "gemini", "opencode", "aider")} < set(found)
    assert (said.code, said.err) == (0, "")
    assert all(name in said.out for name in found)
    assert "\x1b" not in said.out


@needs_sandbox
def test_without_tmux_the_main_job_runs_and_the_cost_is_named(shell, tmp_path):
    answer = doctor(shell, **without(tmp_path / "bin", "tmux"))

    tmux = parts(answer)["tmux"]
    assert answer.code == 0
    assert (tmux["found"], tmux["costs"]) == ("not installed", "no takeover of an agent's session")
    assert "install tmux" in tmux["fix"]


@needs_sandbox
def test_it_says_what_keeps_sessions_from_the_users_abstract_sockets(shell):
    found = parts(doctor(shell))["abstract sockets"]

    if scoping():
        assert (found["found"], found["costs"]) == ("closed to sessions, by Landlock", "")
    elif uplink():
        assert found["found"] == "closed to sessions, by a network of their own (pasta)"
    else:
        assert found["found"] == "open to sessions"
        assert "X11" in found["costs"]
        assert "apt install passt" in found["fix"]


def test_a_service_whose_program_is_missing_is_needed_and_said_how_to_install():
    check = Checkup(
        version=lambda _: "2.40",
        trouble=lambda: None,
        sockets_closed_by=lambda: "a test",
        absent=lambda kind: "initdb" if kind == ServiceKind.POSTGRES else "",
    )
    services = (
        Service("db", kind=ServiceKind.POSTGRES),
        Service("redis", kind=ServiceKind.REDIS),
        Service("own", "x"),
    )
    settings = Settings(formula="none", gates=(), services=services)

    found = {it.name: it for it in check.machine(settings) if it.name.startswith("service ")}

    assert list(found) == ["service db", "service redis"]
    assert (found["service redis"].found, found["service redis"].costs) == (
        "redis is installed",
        "",
    )
    missing = found["service db"]
    assert (missing.found, missing.needed) == ("initdb is not installed", True)
    assert missing.costs
    assert "apt install postgresql" in missing.fix


def test_labels_are_said_to_be_asked_of_a_fleets_hosts_alone():
    check = Checkup(
        version=lambda _: "2.40",
        trouble=lambda: None,
        sockets_closed_by=lambda: "a test",
        absent=lambda _: "",
    )

    found = check.machine(Settings(formula="none", gates=(), needs=("gpu",)))

    [labels] = [it for it in found if it.name == "labels"]
    assert (labels.found, labels.costs) == ("gpu: asked of the hosts of a fleet alone", "")


NEEDED = {"git": "nothing works without it", "bwrap": "no agent and no gate runs"}


@pytest.mark.measured
@pytest.mark.parametrize("program", NEEDED)
def test_without_what_the_main_job_needs_it_exits_1_and_says_what_to_install(
    shell, tmp_path, program
):
    lacking = without(tmp_path / "bin", program)
    answer = shell.program("doctor", "--json", env=lacking)
    said = shell.program("doctor", env=lacking)

    part = parts(answer)["git" if program == "git" else "sandbox"]
    assert (answer.code, answer.facts["ready"]) == (1, False)
    assert NEEDED[program] in part["costs"]
    assert "install" in part["fix"]
    assert said.code == 1
    assert part["fix"] in said.out


def test_a_git_that_is_too_old_will_not_do(shell, tmp_path):
    place = without(tmp_path / "bin", "git")
    old = tmp_path / "bin" / "git"
    old.write_text("#!/bin/sh\necho git version 2.37.9\n", encoding="utf-8")
    old.chmod(0o755)

    answer = doctor(shell, **place)

    assert answer.code == 1
    assert parts(answer)["git"]["found"] == "2.37.9"
    assert "2.38 is the oldest" in parts(answer)["git"]["costs"]


def test_without_a_sandbox_by_choice_it_is_ready_and_says_what_that_means(shell, tmp_path):
    commit_config(shell, CONFIG + '\n[sandbox]\nlevel = "none"\n')

    answer = doctor(shell, **without(tmp_path / "bin", "bwrap"))

    assert answer.code == 0
    assert "all that you can" in parts(answer)["sandbox"]["costs"]


def test_a_database_that_cannot_be_opened_is_named_with_all_the_rest(shell):
    shell.home.write_text("a file in the way", encoding="utf-8")

    answer = doctor(shell)

    assert answer.code == 1
    assert parts(answer)["database"]["costs"]
    assert parts(answer)["git"]["costs"] == ""


@needs_sandbox
def test_a_log_that_somebody_changed_is_told(shell):
    shell.create()
    with sqlite3.connect(shell.home / "lockgate.db") as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE events SET data = '{}' WHERE seq = 1")
    db.close()

    answer = doctor(shell)

    assert "event 1 was changed after it was written" in parts(answer)["database"]["costs"]


@needs_sandbox
def test_a_broken_configuration_is_told_and_the_rest_looked_at(shell):
    commit_config(shell, "nonsense = 1\n")

    answer = doctor(shell)

    assert "nonsense" in parts(answer)["configuration"]["costs"]
    assert "agent claude" in parts(answer)


@needs_sandbox
def test_an_agent_without_a_login_says_how_to_get_one(shell, tmp_path):
    place = without(tmp_path / "bin")
    claude = tmp_path / "bin" / "claude"
    claude.write_text("#!/bin/sh\necho 9.8.7 for a test\n", encoding="utf-8")
    claude.chmod(0o755)
    keyless = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "CLAUDE_CODE_OAUTH_TOKEN": ""}

    before = parts(doctor(shell, **place, **keyless))["agent claude"]
    shell.run("auth", "claude", "--token-stdin", stdin=b"sk-test\n")
    after = parts(doctor(shell, **place, **keyless))["agent claude"]

    assert (before["found"], before["fix"]) == ("9.8.7", "lockgate auth claude")
    assert (after["found"], after["costs"]) == ("9.8.7", "")


def test_a_fallback_that_is_not_installed_is_told(shell, tmp_path):
    commit_config(shell, f'{CONFIG}\n[agents.claude]\nfallback = "codex"\n')

    found = parts(doctor(shell, **without(tmp_path / "bin")))

    skipped = "it can be given no task; it is skipped as the fallback of claude"
    assert (found["agent codex"]["costs"], found["agent gemini"]["costs"]) == (
        skipped,
        "it can be given no task",
    )


def test_it_works_outside_of_every_repository(shell, tmp_path):
    answer = shell.run("doctor", "--json", cwd=tmp_path)

    assert "configuration" not in parts(answer)
    assert parts(answer)["git"]["costs"] == ""


def test_an_agent_is_told_nothing(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)

    answer = shell.run("doctor", "--json", token=shell.begin(id, Role.WORKER))

    assert "a worker may not do that" in parts(answer)["database"]["costs"]
    assert "home" not in parts(answer)


# --- what it starts -----------------------------------------------------------------------------

EVIL = """#!/bin/sh
{ echo "$0"; env; } >> EVIDENCE
echo 6.6.6
"""
NAMED = """
[agents.mine]
command = ["./evil.sh"]
[agents.linked]
command = ["linked-to-evil"]
[agents.elsewhere]
command = ["OTHER/evil.sh"]
[agents.bare]
command = ["evil"]
"""


def a_script(at: Path, text: str) -> Path:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(text, encoding="utf-8")
    at.chmod(0o755)
    return at


@needs_sandbox
def test_no_program_that_lies_in_a_repository_is_started(shell, tmp_path):
    place, other = without(tmp_path / "bin"), tmp_path / "another clone"
    evil = EVIL.replace("EVIDENCE", str(tmp_path / "evidence"))
    for name in ("evil.sh", "tools/evil", "tools/git", "tools/tmux", "tools/claude"):
        a_script(shell.repo / name, evil)
    a_script(other / "evil.sh", evil)
    (other / ".git").mkdir()
    (tmp_path / "bin" / "linked-to-evil").symlink_to(shell.repo / "evil.sh")
    commit_config(shell, CONFIG + NAMED.replace("OTHER", str(other)))
    path = f"{shell.repo}/tools:tools:.:{place['PATH']}"

    answer = doctor(shell, PATH=path)
    tried = shell.run("doctor", cwd=shell.repo / "tools", env={"PATH": path})

    assert not (tmp_path / "evidence").exists()
    assert "6.6.6" not in answer.out + tried.out
    assert parts(answer)["git"]["found"] == version_of("git")
    assert parts(answer)["agent mine"]["found"] == "installed"


@needs_sandbox
def test_a_program_that_is_asked_for_its_version_learns_nothing_of_the_user(shell, tmp_path):
    place = without(tmp_path / "bin")
    a_script(tmp_path / "bin" / "claude", EVIL.replace("EVIDENCE", str(tmp_path / "seen")))
    for name in ("env", "mkdir"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")

    answer = doctor(shell, **place, ANTHROPIC_API_KEY="sk-secret", AWS_PROFILE="mine")

    lines = (tmp_path / "seen").read_text().splitlines()[1:]
    seen = dict(line.split("=", 1) for line in lines)
    assert parts(answer)["agent claude"]["found"] == "6.6.6"
    assert set(seen) - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "LANG", "HOME"}
    assert seen["HOME"] != str(shell.user)
    assert not Path(seen["HOME"]).exists()


# --- trying an agent ----------------------------------------------------------------------------


@needs_sandbox
def test_the_scripted_agent_answers_from_inside_the_sandbox_and_leaves_nothing(shell):
    answer = doctor(shell, "--try", "scripted")
    said = shell.run("doctor", "--try", "scripted")

    assert answer.code == 0, answer
    assert (answer.facts["tried"]["said"], answer.facts["tried"]["why"]) == ("ready", "")
    assert "scripted answered" in said.out
    assert list((shell.home / "sessions").iterdir()) == []
    assert list((shell.home / "trials").iterdir()) == []


OWN = """
[agents.mute]
command = ["sh", "-c", "echo no key for you >&2; exit 3", "{prompt}"]
"""


@needs_sandbox
@pytest.mark.parametrize(
    ("agent", "why"),
    [("mute", "no key for you"), ("nosuch", "was not found"), ("claude", "not on this machine")],
)
def test_an_agent_that_does_not_answer_is_told_with_its_own_words(shell, tmp_path, agent, why):
    commit_config(shell, CONFIG + OWN)

    answer = doctor(shell, "--try", agent, **without(tmp_path / "bin"))

    assert answer.code == 1
    assert why in answer.facts["tried"]["why"]
    assert not (shell.home / "trials").exists() or not list((shell.home / "trials").iterdir())


# --- logins -------------------------------------------------------------------------------------


def stored(shell: Shell, agent: str) -> Path:
    return shell.home / "auth" / f"{agent}.json"


def given(shell: Shell, agent: str, *names: str, **environ: str) -> dict[str, str]:
    """What a session of that agent would get."""
    return dict(StoredCredentials(shell.home, environ).of(agent, names))


def test_a_token_is_stored_for_its_owner_alone_and_never_shown(shell):
    answer = shell.run("auth", "claude", "--token-stdin", stdin=b"sk-very-secret\n")
    shown = shell.run("auth", "claude", "--show")
    facts = shell.run("auth", "claude", "--show", "--json")

    assert (answer.code, answer.err) == (0, "")
    assert str(stored(shell, "claude")) in answer.out
    assert stat.S_IMODE(stored(shell, "claude").stat().st_mode) == 0o600
    assert given(shell, "claude") == {"ANTHROPIC_API_KEY": "sk-very-secret"}
    assert "ANTHROPIC_API_KEY: stored" in shown.out
    assert facts.facts["names"]["ANTHROPIC_API_KEY"] == {
        "stored": True,
        "set": True,
        "source": "stored",
    }
    assert "secret" not in answer.out + shown.out + shown.err + facts.out


def test_a_variable_is_stored_by_its_name_and_read_at_each_start(shell):
    answer = shell.run(
        *("auth", "claude", "--variable", "MY_KEY", "--as", "CLAUDE_CODE_OAUTH_TOKEN", "--json")
    )
    shown = shell.run("auth", "claude", "--show")

    assert answer.facts["name"] == "CLAUDE_CODE_OAUTH_TOKEN"
    assert "MY_KEY is not set here" in answer.err
    assert "sk-1" not in stored(shell, "claude").read_text(encoding="utf-8")
    assert given(shell, "claude", MY_KEY="sk-1") == {"CLAUDE_CODE_OAUTH_TOKEN": "sk-1"}
    assert "stored, but the variable it names is not set" in shown.out


def test_a_token_is_asked_for_at_a_terminal_and_not_shown_while_it_is_typed(shell):
    seat = Seat(shell, "auth", "claude")
    seat.until(b"ANTHROPIC_API_KEY for claude")
    seat.type(b"sk-typed\n")

    assert seat.end() == 0, seat.seen
    assert b"sk-typed" not in seat.seen
    assert given(shell, "claude") == {"ANTHROPIC_API_KEY": "sk-typed"}


NO_TOKENS = (b"", b"\n", b'{"refresh_token": "x"}', b"two\nlines", b"a\x1b[31m", b"x" * 10_001)


@pytest.mark.parametrize("text", NO_TOKENS, ids=lambda it: repr(it[:12]))
def test_what_is_no_token_is_not_stored(shell, text):
    answer = shell.run("auth", "claude", "--token-stdin", stdin=text)

    assert "not one line without spaces" in answer.why
    assert not stored(shell, "claude").exists()


REFUSED = (
    (("auth", "claude"), 2, "--token-stdin"),
    (("auth", "nosuch", "--variable", "X"), 2, "was not found"),
    (("auth", "claude", "--variable", "sk-ant-1"), 1, "no name of a variable"),
    (("auth", "claude", "--variable", "X", "--as", "PATH"), 1, "claude reads no PATH"),
    (("auth", "mute", "--variable", "X"), 1, "reads no variable to log in with"),
    (("auth", "../x", "--variable", "X"), 2, "was not found"),
)


@pytest.mark.parametrize(("argv", "code", "why"), REFUSED)
def test_a_login_that_would_not_reach_its_agent_is_refused(shell, argv, code, why):
    commit_config(shell, CONFIG + OWN)

    answer = shell.run(*argv)

    assert answer.code == code
    assert why in answer.why
    assert not (shell.home / "auth").exists()


def test_an_agent_that_takes_no_login_shows_none(shell):
    commit_config(shell, CONFIG + OWN)

    assert "mute needs no login" in shell.run("auth", "mute", "--show").out
    assert json.loads(shell.did("auth", "mute", "--show", "--json"))["names"] == {}


# --- one answer for shell, orchestrator and session ---------------------------------------------

KEYLESS = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "CLAUDE_CODE_OAUTH_TOKEN": ""}


@pytest.fixture
def claude(shell, tmp_path) -> dict[str, str]:
    """An environment that has a program of that name and no login; the project's agent is it."""
    place = without(tmp_path / "bin")
    a_script(tmp_path / "bin" / "claude", "#!/bin/sh\necho 9.8.7\n")
    commit_config(shell, CONFIG.replace('"scripted"', '"claude"'))
    return place | KEYLESS


def answers(shell: Shell, environ: dict[str, str]) -> list[str]:
    """What `auth --show`, `doctor` and `run` say of claude's login."""
    shown = shell.run("auth", "claude", "--show", "--json", env=environ)
    part = parts(doctor(shell, **environ))["agent claude"]
    run = shell.run("run", "Say hello", "--no-wait", env=environ)
    logged_in = shown.facts["logged_in"], not part["costs"], run.code == 0
    assert len(set(logged_in)) == 1, (shown, part, run)
    return [shell.run("auth", "claude", "--show", env=environ).out, part["costs"], run.err]


@needs_sandbox
def test_a_missing_login_is_told_by_all_three_commands_before_a_task_exists(shell, claude):
    for told in answers(shell, claude):
        assert "claude is not logged in" in told
    assert json.loads(shell.did("task", "list", "--json"))["rows"] == []


@needs_sandbox
@pytest.mark.parametrize("how", ["stored", "environment"])
def test_a_login_that_reaches_the_agent_is_seen_by_all_three_commands(shell, claude, how):
    if how == "stored":
        shell.run("auth", "claude", "--token-stdin", stdin=b"sk-1", env=claude)
    else:
        claude["ANTHROPIC_API_KEY"] = "sk-1"

    for told in answers(shell, claude):
        assert "not logged in" not in told


@needs_sandbox
def test_a_model_without_a_key_is_no_login(shell, claude):
    claude |= {"ANTHROPIC_MODEL": "x", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}

    for told in answers(shell, claude):
        assert "claude is not logged in" in told


@needs_sandbox
def test_a_key_that_only_this_shell_has_is_told_while_an_orchestrator_runs(shell, claude):
    shell.program("up", "--detach", env=claude)
    try:
        with_key = claude | {"ANTHROPIC_API_KEY": "sk-1"}
        for told in answers(shell, with_key):
            assert "is set in this shell, but the orchestrator was started without it" in told
        shell.run("auth", "claude", "--variable", "MINE", env=with_key)
        for told in answers(shell, with_key):
            assert "claude is not logged in" in told
    finally:
        shell.program("down", env=claude)


@needs_sandbox
def test_a_key_that_the_orchestrator_has_counts_though_this_shell_has_none(shell, claude):
    shell.program("up", "--detach", env=claude | {"ANTHROPIC_API_KEY": "sk-1"})
    try:
        for told in answers(shell, claude):
            assert "not logged in" not in told
    finally:
        shell.program("down", env=claude)


def test_a_login_is_forgotten(shell):
    shell.run("auth", "claude", "--token-stdin", stdin=b"sk-1")

    answer = shell.run("auth", "claude", "--forget")
    again = shell.run("auth", "claude", "--forget", "--json")

    assert "removed what was stored for claude: ANTHROPIC_API_KEY" in answer.out
    assert not stored(shell, "claude").exists()
    assert (again.code, again.facts["forgotten"]) == (0, [])


def test_a_login_whose_file_is_broken_can_be_forgotten(shell):
    shell.run("auth", "claude", "--token-stdin", stdin=b"sk-1")
    stored(shell, "claude").write_text("{", encoding="utf-8")

    assert shell.run("auth", "claude", "--forget").code == 0
    assert not stored(shell, "claude").exists()


def test_a_token_without_a_name_is_stored_as_the_first_key_of_its_agent(shell):
    shell.run("auth", "aider", "--token-stdin", stdin=b"sk-1")

    assert given(shell, "aider") == {"OPENAI_API_KEY": "sk-1"}


def test_evidence_that_git_has_lost_is_told_and_written_again(shell):
    shell.create()
    shell.git("notes", "--ref=refs/notes/lockgate", "add", "-m", "x", "HEAD")
    id = (shell.repo / ".git" / "refs" / "notes" / "lockgate").read_text().strip()
    (shell.repo / ".git" / "objects" / id[:2] / id[2:]).unlink()

    told = shell.run("doctor").out
    mended = shell.run("doctor", "--repair").out

    assert "git has lost a part of refs/notes/lockgate" in told
    assert "lockgate doctor --repair" in told
    assert "0 notes were written again" in mended
    assert "refs/notes/lockgate" not in shell.run("doctor").out
