"""Gemini CLI: headless with a stream of events, resumed by its session id."""

import json
import re
import shlex
from functools import partial

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.programs import (
    Event,
    events,
    inner,
    is_refused,
    limited_until,
    shortened,
    text,
    unexplained,
)
from lockgate.adapters.harnesses.programs import whole as total
from lockgate.core.model.agents import Ending, Exit, Job, Launch, Report, Usage

VARIABLES = ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL")
SETTINGS = ".gemini/settings.json"
HOOK_MILLISECONDS = 120_000
ATTEMPTS = 3
REFUSED_CODES = (41, 401 % 256, 403 % 256)  # of a failed login, and of an HTTP status
REFUSED_STATUSES, LIMITED_STATUSES = ("401", "403"), ("429", "503")
# In the report of a failed request, on stderr. The exit code has this too, but beyond 128 a
# sandbox's exit code is a signal's.
LIMITED = r"Attempt \d+ failed with status (429|503)\b"
_STATUS = re.compile(r"^ +status: (\d{3}),?$", re.MULTILINE)


def launch(found: Found, job: Job) -> Launch:
    """Settings are read while the folder is not trusted, so that the project's are left out.

    Then --skip-trust grants it; without trust no tool is approved and no hook is run.
    """
    model = job.environ.get("GEMINI_MODEL")
    headless = ("--output-format", "stream-json")
    prompt = ("--prompt-interactive", programs.prompt_argument(job)) if job.prompt else ()
    return Launch(
        argv=(
            *found.argv,
            *("--skip-trust", "--approval-mode", "yolo"),
            *(("--model", model) if model else ()),
            *(("--resume", job.native) if job.native else ()),
            *(prompt if job.interactive else headless),
        ),
        env={
            "GEMINI_CLI_NO_RELAUNCH": "true",  # a relaunched child outlives its parent
            **job.environ,
        },
        stdin=None if job.interactive else job.prompt,
        files={
            SETTINGS: json.dumps({**_settings(), **_servers(job), "hooks": _hooks(job)}),
            **(programs.prompt_file(job) if job.interactive else {}),
        },
        limited=LIMITED,
    )


def read(output: str, exit: Exit, now: float) -> Report:
    """TERM and INT end it with 0 and without a result: such an end is unexplained."""
    seen = list(events(output))
    last = {text(it, "type"): it for it in seen if text(it, "severity") != "warning"}
    result = last.get("result", {})
    finished = text(result, "status") == "success"
    failure = text(inner(result, "error"), "message") or text(last.get("error", {}), "message")
    silent = unexplained(exit, output, finished=finished)
    why = "" if finished else failure or silent
    status = "" if finished else _status(output)
    limited = exit.ending is Ending.LIMITED or _limited(why, status)
    return Report(
        native=text(last.get("init", {}), "session_id") if _answered(seen) else "",
        usage=Usage(tokens=total(inner(result, "stats"), "total_tokens")),
        exhausted="exceeds the maximum number of tokens" in why,
        limited_until=limited_until(why, now) if limited else None,
        refused=exit.code in REFUSED_CODES or status in REFUSED_STATUSES or is_refused(why),
        failure=shortened(why),
        said=shortened(_said(seen)),
    )


def _answered(seen: list[Event]) -> bool:
    """Whether its model said anything: before that it keeps nothing that could be resumed."""
    return any(text(it, "type") == "tool_use" or text(it, "role") == "assistant" for it in seen)


def _status(output: str) -> str:
    """Of the last request that failed; empty where none is told."""
    found: list[str] = _STATUS.findall(output)
    return found[-1] if found else ""


def _limited(why: str, status: str) -> bool:
    words = ("429", "RESOURCE_EXHAUSTED", "quota", "503", "overloaded")
    return status in LIMITED_STATUSES or any(word in why for word in words)


def _said(seen: list[Event]) -> str:
    """Its last words come in pieces."""
    pieces: list[str] = []
    for event in seen:
        if text(event, "role") == "assistant":
            pieces.append(text(event, "content"))
        elif text(event, "type") != "result":
            pieces.clear()
    return "".join(pieces)


def _settings() -> dict[str, object]:
    return {
        "security": {
            "auth": {"selectedType": "gemini-api-key"},
            "folderTrust": {"enabled": True},
        },
        "context": {"fileName": ["GEMINI.md", "AGENTS.md"]},
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            "maxAttempts": ATTEMPTS,
        },
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "advanced": {"ignoreLocalEnv": True},
    }


def _servers(job: Job) -> dict[str, object]:
    if not job.mcp_command:
        return {}
    command, *args = job.mcp_command
    server = {
        "command": command,
        "args": args,
        "env": {programs.SOCKET: f"${programs.SOCKET}"},
        "timeout": programs.TOOL_SECONDS * 1000,
        "trust": True,
    }
    return {"mcpServers": {programs.SERVER: server}}


def _hooks(job: Job) -> dict[str, object]:
    """A hook that fails in any way blocks for ever, so that ours never does."""
    if not job.stop_command:
        return {}
    command = f"{shlex.join(job.stop_command)} || true"
    hook = {"type": "command", "command": command, "timeout": HOOK_MILLISECONDS}
    return {"AfterAgent": [{"hooks": [hook]}]}


HARNESS = Harness(
    install="npm install -g @google/gemini-cli@0.61.0",
    find=partial(programs.find, "gemini"),
    launch=launch,
    read=read,
    variables=VARIABLES,
    keys=("GEMINI_API_KEY",),
)
