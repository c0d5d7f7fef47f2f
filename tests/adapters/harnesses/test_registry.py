"""The registry of harnesses, agents of the user's own, and how programs are found and started."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockgate.adapters.harnesses import Registry
from lockgate.adapters.harnesses.registry import MODULES
from lockgate.core.config.settings import HARNESSES, AgentSettings, Settings
from lockgate.core.model.agents import Ending, Exit, Job, Launch
from lockgate.core.model.task import Role
from lockgate.errors import BadConfig, Unavailable

NONE = Settings(formula="none", gates=())
REAL = ("claude", "codex", "gemini", "opencode", "aider")
STOP = ("/run/lockgate/bin/lockgate", "checkpoint", "--task-id", "it's", "--done")


def job(**more) -> Job:
    return Job(**{"prompt": "go", "role": Role.WORKER, "task": "t", "session": "s1"} | more)


def program(directory: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """Every agent's program is there, in name."""
    for name in REAL:
        program(tmp_path / "bin", name, "\x7fELF, as far as anybody looks\n")
    return Registry(search=str(tmp_path / "bin"), now=lambda: 1_800_000_000.0)


def launched(registry: Registry, agent: str, **more) -> Launch:
    return registry.launch(agent, NONE, job(**more))


# --- the registry -------------------------------------------------------------------------------


def test_every_agent_that_a_configuration_may_name_has_a_harness() -> None:
    assert set(HARNESSES) <= set(MODULES)
    assert all(Registry().variables(name, NONE) for name in MODULES)


@pytest.mark.parametrize("agent", REAL)
def test_a_program_that_is_missing_is_told_with_how_to_install_it(agent, tmp_path) -> None:
    empty = Registry(search=str(tmp_path))

    hint = empty.missing(agent, NONE)

    assert hint is not None
    assert "install" in hint
    with pytest.raises(Unavailable) as error:
        empty.launch(agent, NONE, job())
    assert error.value.fix == hint


def test_an_agent_that_nobody_knows_is_a_matter_of_the_configuration() -> None:
    with pytest.raises(BadConfig, match="'nobody' was not found") as error:
        Registry().can_resume("nobody", NONE)

    assert "[agents.nobody]" in error.value.fix


def installed(root: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """A third party's package, as an installer leaves it."""
    code = (
        "from lockgate.adapters.harnesses import Found, Harness\n"
        "from lockgate.core.model.agents import Launch, Report\n"
        "other = 3\n"
        "harness = Harness(install='-', find=lambda _: Found(('true',), ()),"
        " launch=lambda found, job: Launch(argv=(*found.argv, job.prompt)),"
        " read=lambda output, exit, now: Report(said=output))\n"
    )
    (root / "their_agent.py").write_text(code, encoding="utf-8")
    about = root / "their_agent-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: their-agent\nVersion: 1\n", encoding="utf-8")
    entry = f"[lockgate.harnesses]\ntheirs = their_agent:{named}\n"
    (about / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.syspath_prepend(root)
    monkeypatch.delitem(sys.modules, "their_agent", raising=False)


def test_a_package_of_a_third_party_brings_an_agent(tmp_path, monkeypatch) -> None:
    installed(tmp_path, monkeypatch, "harness")

    assert Registry().launch("theirs", NONE, job()).argv == ("true", "go")
    assert Registry().missing("theirs", NONE) is None


def test_a_package_that_brings_something_else_is_refused(tmp_path, monkeypatch) -> None:
    installed(tmp_path, monkeypatch, "other")

    with pytest.raises(BadConfig, match="names a int"):
        Registry().missing("theirs", NONE)


# --- an agent of the user's own -----------------------------------------------------------------

SCRIPT = """\
#!/bin/sh
echo "$@"
cat "$2"
exit ${CODE:-0}
"""


def mine(*command: str, **more) -> Settings:
    agent = AgentSettings(name="mine", command=command, **more)
    return Settings(formula="none", gates=(), agents=(agent,))


def run(launch: Launch, home: Path, **env: str) -> tuple[str, Exit]:
    for name, text in launch.files.items():
        (home / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        launch.argv,
        env={"PATH": os.defpath, **launch.env, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, Exit(ending=Ending.EXITED, code=done.returncode)


def test_a_command_gets_its_prompt_as_a_file_and_its_own_variables_alone(tmp_path) -> None:
    program(tmp_path, "my-agent", SCRIPT)
    settings = mine("my-agent", "--file", "{prompt_file}", env=("MY_KEY",))
    registry = Registry(search=f"{tmp_path}:{os.defpath}")

    launch = registry.launch(
        "mine", settings, job(home=str(tmp_path), environ={"MY_KEY": "k", "OTHER": "o"})
    )
    output, exit = run(launch, tmp_path)
    report = registry.read("mine", settings, output, exit)

    assert launch.env == {"MY_KEY": "k"}
    assert output.endswith("go")
    assert (report.failure, report.said) == ("", "go")


def test_a_command_is_resumed_by_the_session_in_which_it_began(tmp_path) -> None:
    program(tmp_path, "my-agent", SCRIPT)
    settings = mine(
        "my-agent", "--id={session}", resume=("my-agent", "--on", "{session}", "{prompt}")
    )
    registry = Registry(search=f"{tmp_path}:{os.defpath}")

    first = registry.launch("mine", settings, job())
    second = registry.launch("mine", settings, job(session="s2", native=first.native))

    assert registry.can_resume("mine", settings)
    assert first.argv[-1] == "--id=s1"
    assert second.argv[-3:] == ("--on", "s1", "go")
    assert second.native == "s1"


def test_what_a_prompt_says_in_braces_stays_as_it_is(tmp_path) -> None:
    program(tmp_path, "my-agent", SCRIPT)
    settings = mine("my-agent", "{prompt} in {session}{session}")

    launch = Registry(search=str(tmp_path)).launch(
        "mine", settings, job(prompt="say {session} and {nothing}")
    )

    assert launch.argv[-1] == "say {session} and {nothing} in s1s1"
    assert not Registry().can_resume("mine", settings)
    assert launch.native == ""


def test_a_command_that_fails_says_its_last_line(tmp_path) -> None:
    program(tmp_path, "my-agent", "#!/bin/sh\necho working\necho 'no more disk'\nexit 3\n")
    registry = Registry(search=f"{tmp_path}:{os.defpath}")

    output, exit = run(registry.launch("mine", mine("my-agent"), job()), tmp_path)

    assert registry.read("mine", mine("my-agent"), output, exit).failure == "no more disk"


def test_a_relative_command_lies_in_the_workspace() -> None:
    registry = Registry(search="/nowhere")

    assert registry.launch("mine", mine("./agent.sh", "-v"), job()).argv == ("./agent.sh", "-v")
    assert registry.paths("mine", mine("./agent.sh")) == ()
    assert registry.missing("mine", mine("my-agent")) is not None


# --- where a program lies -----------------------------------------------------------------------


def test_a_script_is_started_by_the_interpreter_that_it_names(tmp_path) -> None:
    node = program(tmp_path / "node/bin", "node", "\x7fELF")
    package = tmp_path / "npm/lib/node_modules"
    script = program(package / "it/dist", "cli.js", "#!/usr/bin/env -S node --quiet\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gemini").symlink_to(script)
    registry = Registry(search=f"{tmp_path / 'bin'}:{node.parent}")

    assert launched(registry, "gemini").argv[:3] == (str(node), "--quiet", str(script))
    assert registry.paths("gemini", NONE) == (str(tmp_path / "node"), str(package))


def test_a_program_of_a_virtual_environment_brings_its_python(tmp_path) -> None:
    home = tmp_path / "pythons/3.11"
    python = program(home / "bin", "python3.11", "\x7fELF")
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(python)
    program(venv / "bin", "aider", f"#!{venv}/bin/python\n")
    registry = Registry(search=str(venv / "bin"))

    assert registry.paths("aider", NONE) == (str(venv), str(home))
    assert launched(registry, "aider").argv[:2] == (f"{venv}/bin/python", "-c")


def test_a_program_in_the_homes_own_bin_does_not_show_the_home() -> None:
    lone = program(Path.home() / "bin", "opencode", "\x7fELF")

    assert Registry(search=str(lone.parent)).paths("opencode", NONE) == (str(lone),)


def test_what_every_sandbox_shows_is_not_named_again(tmp_path) -> None:
    (tmp_path / "claude").symlink_to("/usr/bin/env")

    assert Registry(search=str(tmp_path)).paths("claude", NONE) == ()


@pytest.mark.parametrize("first", ["#!\n", "#!/usr/bin/env\n", "#!/usr/bin/env no-such-thing\n"])
def test_a_first_line_that_names_nothing_is_left_to_the_system(first, tmp_path) -> None:
    at = program(tmp_path, "claude", first)

    assert launched(Registry(search=str(tmp_path)), "claude").argv[0] == str(at)


def test_the_native_codex_is_started_and_not_its_shim(tmp_path) -> None:
    node = program(tmp_path / "node/bin", "node", "\x7fELF")
    modules = tmp_path / "lib/node_modules"
    shim = program(modules / "@openai/codex/bin", "codex.js", "#!/usr/bin/env node\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codex").symlink_to(shim)
    registry = Registry(search=f"{tmp_path / 'bin'}:{node.parent}")

    assert launched(registry, "codex").argv[:2] == (str(node), str(shim))

    native = program(modules / "@openai/codex-linux-x64/vendor/any/bin", "codex", "\x7fELF")
    assert launched(registry, "codex").argv[0] == str(native)
    assert registry.paths("codex", NONE) == (str(modules),)


# --- how an agent is started --------------------------------------------------------------------

LOGINS = {
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "codex": ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
    "gemini": ("GEMINI_API_KEY",),
    "opencode": ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    "aider": ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
}


@pytest.mark.parametrize("agent", REAL)
def test_an_agent_gets_its_own_login_and_nobody_elses(agent, registry) -> None:
    own = {name: f"secret of {name}" for name in LOGINS[agent]}
    others = {"GITHUB_TOKEN": "theirs", "LOCKGATE_TOKEN": "theirs", "AWS_SECRET_ACCESS_KEY": "t"}

    launch = launched(registry, agent, environ={**own, **others, "HTTPS_PROXY": "http://p"})

    assert own.items() <= launch.env.items()
    assert launch.env["HTTPS_PROXY"] == "http://p"
    assert not others.keys() & launch.env.keys()
    written = json.dumps([*launch.argv, *launch.files.values()])
    assert not any(secret in written for secret in own.values())


@pytest.mark.parametrize("agent", REAL)
@pytest.mark.parametrize("native", ["", "abc"])
def test_a_prompt_of_any_length_is_on_no_command_line(agent, native, registry) -> None:
    prompt = "word " * 100_000

    launch = launched(registry, agent, prompt=prompt, native=native)

    assert max(map(len, launch.argv)) < 2000
    assert prompt in (launch.stdin, *launch.files.values())
    assert ("abc" in " ".join(launch.argv)) == bool(native)


@pytest.mark.parametrize("agent", REAL)
@pytest.mark.parametrize("prompt", ["", "go", "word " * 100_000])
def test_a_person_can_attach_to_an_agent(agent, prompt, registry) -> None:
    launch = launched(registry, agent, prompt=prompt, native="abc", interactive=True)

    assert launch.stdin is None
    assert "abc" in " ".join(launch.argv)
    assert max(map(len, launch.argv)) < 2000
    if len(prompt) > 2000:
        assert prompt in launch.files.values()
    elif agent != "aider":  # it takes no prompt and stays
        assert (launch.argv[-1] == prompt) == bool(prompt)
    assert "--message-file" not in launch.argv


@pytest.mark.parametrize("agent", REAL)
def test_paths_are_those_of_the_home_that_the_agent_has(agent, registry) -> None:
    launch = launched(registry, agent, home="/h", workspace="/w", stop_command=STOP)

    everything = json.dumps([launch.argv, dict(launch.env), dict(launch.files)])
    assert "/home/agent" not in everything
    assert "/workspace" not in everything


def hooks_of(launch: Launch, agent: str) -> Mapping[str, object]:
    texts = {
        "claude": lambda: launch.argv[launch.argv.index("--settings") + 1],
        "codex": lambda: launch.files[".codex/hooks.json"],
        "gemini": lambda: launch.files[".gemini/settings.json"],
    }
    hooks: Mapping[str, object] = json.loads(texts[agent]()).get("hooks", {})
    return hooks


@pytest.mark.parametrize(
    ("agent", "event", "end"),
    [
        ("claude", "Stop", "--done"),
        ("codex", "Stop", "--done"),
        ("gemini", "AfterAgent", "|| true"),
    ],
)
@pytest.mark.req("R116", "R118")
def test_the_stop_command_is_a_hook_where_there_are_any(agent, event, end, registry) -> None:
    hooks = hooks_of(launched(registry, agent, stop_command=STOP), agent)

    command = hooks[event][0]["hooks"][0]["command"]  # type: ignore[index]  # as the program wants it
    assert command.startswith("/run/lockgate/bin/lockgate checkpoint --task-id ")
    assert command.endswith(end)
    assert """'it'"'"'s'""" in command
    assert hooks_of(launched(registry, agent), agent) == {}


def test_claude_reads_no_settings_but_ours(registry) -> None:
    argv = launched(registry, "claude").argv

    assert argv[argv.index("--setting-sources") + 1] == ""


def test_codex_does_not_trust_the_project_and_asks_the_server_that_it_is_told(registry) -> None:
    given = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": 'http://h/"v1', "OPENAI_MODEL": "m"}

    told = tomllib.loads(launched(registry, "codex", environ=given).files[".codex/config.toml"])
    alone = tomllib.loads(launched(registry, "codex").files[".codex/config.toml"])

    assert told["model"] == "m"
    assert told["model_providers"]["lockgate"]["base_url"] == 'http://h/"v1'
    assert told["model_providers"]["lockgate"]["env_key"] == "OPENAI_API_KEY"
    assert told["projects"]["/workspace"]["trust_level"] == "untrusted"
    assert "model_provider" not in alone


def test_opencode_asks_the_server_that_it_is_told(registry) -> None:
    def config(**environ: str) -> dict[str, object]:
        launch = launched(registry, "opencode", environ=environ)
        read: dict[str, object] = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])
        return read

    assert config(OPENCODE_MODEL="m", OPENAI_BASE_URL="http://h/v1")["model"] == "server/m"
    assert config(OPENCODE_MODEL="anthropic/m")["model"] == "anthropic/m"
    assert "model" not in config()


def test_gemini_takes_the_model_that_it_is_told(registry) -> None:
    assert "--model" not in launched(registry, "gemini").argv
    assert "m" in launched(registry, "gemini", environ={"GEMINI_MODEL": "m"}).argv


# --- its server and its login -------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
def test_an_agent_is_told_of_lockgates_server_where_there_is_one(registry, agent) -> None:
    server = ("/run/lockgate/bin/tools", "mcp")

    without, told = launched(registry, agent), launched(registry, agent, mcp_command=server)

    assert server[0] not in repr(without)
    assert server[0] in repr(told)
    assert told.argv[0] == without.argv[0]


@pytest.mark.parametrize(
    ("agent", "given", "key"),
    [
        ("aider", {"AIDER_MODEL": "deepseek-chat"}, "DEEPSEEK_API_KEY"),
        ("aider", {}, "OPENAI_API_KEY"),
        ("opencode", {"OPENCODE_MODEL": "anthropic/x"}, "ANTHROPIC_API_KEY"),
        (
            "opencode",
            {"OPENCODE_MODEL": "anthropic/x", "OPENAI_BASE_URL": "http://127.0.0.1"},
            "OPENAI_API_KEY",
        ),
    ],
)
def test_the_key_that_is_used_is_that_of_the_models_provider(registry, agent, given, key) -> None:
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY")
    every = dict.fromkeys(keys, "k") | given

    assert registry.login(agent, NONE, every) == key
    assert key in registry.logins(agent, NONE)
    assert registry.login(agent, NONE, {}) == ""
