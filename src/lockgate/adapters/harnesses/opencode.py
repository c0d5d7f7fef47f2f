"""opencode: `opencode run` with JSON events, resumed by its session id. No hook of it blocks."""

import json
import re
from collections.abc import Mapping
from functools import partial

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.programs import (
    Event,
    events,
    inner,
    is_refused,
    limited_until,
    number,
    shortened,
    text,
    unexplained,
    whole,
)
from lockgate.core.model.agents import Ending, Exit, Job, Launch, Report, Usage

# With OPENAI_BASE_URL the model is that server's; without it, any of those that it knows by itself.
KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENCODE_API_KEY",
    "OPENAI_BASE_URL",  # a server on this machine may ask for no key
)
VARIABLES = (
    "OPENCODE_MODEL",  # ours: provider/model, or the model of the server above
    "ANTHROPIC_BASE_URL",  # as Claude Code has it, without the version
    *KEYS,
)
LOGS = ("--print-logs", "--log-level", "ERROR")  # on stderr
PROVIDERS = {  # by how the name of a model begins
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "opencode": ("OPENCODE_API_KEY",),
}
# It tries again for a minute, or for as long as a server says, and tells nobody but its log. That
# has no status; what it tries again is a limit, or a server that cannot be reached.
LOG = r'timestamp=\S+ level=ERROR .*message="stream error" .*small=false .*error\.error="'
LIMITED = rf"{LOG}(?!.*(?i:connect|ECONN|fetch failed|socket|network|Internal Server Error))"
_SESSION = re.compile(
    r'^timestamp=.* message="stream error" .*session\.id=(\w+) .*small=false', re.MULTILINE
)
_LOGGED = re.compile(rf'^{LOG}((?:[^"\\]|\\.)*)"', re.MULTILINE)
SWITCHES = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_PURE": "1",  # no plugins: without a network it waits a minute for them
}


def launch(found: Found, job: Job) -> Launch:
    session = ("--session", job.native) if job.native else ()
    return Launch(
        argv=(
            *found.argv,
            *(
                (*session, *_prompt(job))
                if job.interactive
                else ("run", "--format", "json", *LOGS, *session)
            ),
        ),
        env={
            **SWITCHES,
            "OPENCODE_CONFIG_CONTENT": json.dumps(_config(job)),
            **{name: f"{job.home}/{place}" for name, place in _FOLDERS.items()},
            **job.environ,
        },
        stdin=None if job.interactive else job.prompt,
        files={
            ".npmrc": "offline=true\n",
            **(programs.prompt_file(job) if job.interactive else {}),
        },
        limited=LIMITED,
    )


def login(given: Mapping[str, str]) -> str:
    """With a server's address it is that server's key, whatever the model is called."""
    model = "openai" if given.get("OPENAI_BASE_URL") else given.get("OPENCODE_MODEL", "")
    return programs.key_in_use(model, PROVIDERS, given)


def read(output: str, exit: Exit, now: float) -> Report:
    """No event says that it is over; a step that finished without asking for a tool does."""
    seen = list(events(output))
    steps = [inner(it, "part") for it in seen if text(it, "type") == "step_finish"]
    said = [text(inner(it, "part"), "text") for it in seen if text(it, "type") == "text"]
    finished = bool(steps) and text(steps[-1], "reason") != "tool-calls"
    failure = _failure(seen) or (_logged(output) if exit.ending is Ending.LIMITED else "")
    why = failure or unexplained(exit, output, finished=finished)
    limited = exit.ending is Ending.LIMITED or _limited(why)
    return Report(
        native=next((text(it, "sessionID") for it in seen if text(it, "sessionID")), "")
        or "".join(_SESSION.findall(output)[-1:]),
        usage=Usage(sum(number(it, "cost") for it in steps), sum(map(_tokens, steps))),
        exhausted="ContextOverflow" in why or "context window" in why,
        limited_until=limited_until(why, now) if limited else None,
        refused=is_refused(why),
        failure=shortened(why),
        said=shortened(said[-1]) if said else "",
    )


_FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}


def _prompt(job: Job) -> tuple[str, ...]:
    return ("--prompt", programs.prompt_argument(job)) if job.prompt else ()


def _config(job: Job) -> dict[str, object]:
    """Everything is allowed: what it may do is the sandbox's to say."""
    config: dict[str, object] = {
        "permission": {"*": "allow"},
        "autoupdate": False,
        "share": "disabled",
        "instructions": [f"{job.workspace}/AGENTS.md"],
    }
    if job.mcp_command:
        server = {
            "type": "local",
            "command": list(job.mcp_command),
            "timeout": programs.STARTS_WITHIN * 1000,
        }
        config["mcp"] = {programs.SERVER: server}
    providers: dict[str, object] = {}
    anthropic = job.environ.get("ANTHROPIC_BASE_URL")
    if anthropic:
        providers["anthropic"] = {"options": {"baseURL": f"{anthropic.rstrip('/')}/v1"}}
    url, model = job.environ.get("OPENAI_BASE_URL"), job.environ.get("OPENCODE_MODEL")
    if model:
        config["model"] = f"server/{model}" if url else model
    if url and model:
        options = {"baseURL": url, "apiKey": "{env:OPENAI_API_KEY}"}
        package = "@ai-sdk/openai-compatible"
        models = {model: {"name": model}}
        providers["server"] = {"npm": package, "options": options, "models": models}
    return {**config, "provider": providers}


def _tokens(step: Event) -> int:
    tokens = inner(step, "tokens")
    cache = whole(inner(tokens, "cache"), "read", "write")
    return whole(tokens, "input", "output", "reasoning") + cache


def _failure(seen: list[Event]) -> str:
    errors = [inner(event, "error") for event in seen if text(event, "type") == "error"]
    if not errors:
        return ""
    data = inner(errors[-1], "data")
    status, message = whole(data, "statusCode"), text(data, "message")
    name = text(errors[-1], "name") or "it reported an error"
    about = f"{name}, status {status}" if status else name
    return f"{about}: {message}" if message else about


def _logged(output: str) -> str:
    """The last failure of a request in its log."""
    told: list[str] = _LOGGED.findall(output)
    return told[-1].replace('\\"', '"') if told else ""


def _limited(why: str) -> bool:
    return any(word in why for word in ("429", "rate limit", "Too Many Requests", "overloaded"))


HARNESS = Harness(
    install="npm install -g opencode-ai@1.18.33",
    find=partial(programs.find, "opencode"),
    launch=launch,
    read=read,
    variables=VARIABLES,
    keys=KEYS,
    login=login,
)
