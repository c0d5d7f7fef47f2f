"""Codex: `codex exec` with JSON events, resumed by its thread; the native program, not its shim."""

import json
import shlex
from pathlib import Path

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
from lockgate.core.model.agents import Exit, Job, Launch, Report, Usage

KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY")  # the first one given is the one used
TOKEN = "CODEX_ACCESS_TOKEN"
VARIABLES = (*KEYS, "OPENAI_BASE_URL", "OPENAI_MODEL", TOKEN)
URL = "https://api.openai.com/v1"
FOLDER = ".codex"  # in the HOME: under the temporary directory its own sandbox would not start
RETRIES = 3
HOOK_SECONDS = 120
# A server that says when to come back is waited for, however long that is, without another word.
LIMITED = r'\{"type":"error","message":"Reconnecting.*(429|503|rate limit|usage limit)'


def find(search: str | None) -> Found | None:
    """The npm package's program is a script; killed, it leaves the native one running."""
    found = programs.find("codex", search)
    if found is None or len(found.argv) == 1:
        return found
    package = Path(found.argv[-1]).parents[1]
    natives = [
        native
        for root in (package.parent, package / "node_modules" / "@openai", package)
        for native in sorted(root.glob("codex-*/vendor/*/bin/codex"))
    ]
    return Found((str(natives[0]),), programs.shown(natives[0])) if natives else found


def launch(found: Found, job: Job) -> Launch:
    bypass = ("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust")
    if job.interactive:
        begin = ("resume", *bypass, job.native) if job.native else bypass
        line = (*begin, *((programs.prompt_argument(job),) if job.prompt else ()))
    else:
        resume = ("resume",) if job.native else ()
        thread = (job.native,) if job.native else ()
        line = ("exec", *resume, "--json", *bypass, *thread, "-")
    return Launch(
        argv=(*found.argv, *line),
        env={"CODEX_HOME": f"{job.home}/{FOLDER}", **job.environ},
        stdin=None if job.interactive else job.prompt,
        files={
            f"{FOLDER}/config.toml": _config(job),
            f"{FOLDER}/hooks.json": json.dumps(_hooks(job)),
            f"{FOLDER}/AGENTS.md": programs.guide(job),
            **(programs.prompt_file(job) if job.interactive else {}),
        },
        limited=LIMITED,
    )


def read(output: str, exit: Exit, now: float) -> Report:
    seen = list(events(output))
    last = {text(event, "type"): event for event in seen}
    ended, failed = last.get("turn.completed"), last.get("turn.failed", {})
    finished = ended is not None
    failure = text(inner(failed, "error"), "message")
    if not failure and not finished:
        failure = text(last.get("error", {}), "message")
    why = failure or unexplained(exit, output, finished=finished)
    return Report(
        native=text(last.get("thread.started", {}), "thread_id"),
        usage=_usage(ended or {}),
        cumulative=finished,
        exhausted="context window" in why,
        limited_until=limited_until(why, now) if _limited(why) else None,
        refused=is_refused(why),
        failure=shortened(why),
        said=shortened(_said(seen)),
    )


def _usage(ended: Event) -> Usage:
    """Of the whole thread; cached tokens are among those read, and it names no price."""
    return Usage(tokens=total(inner(ended, "usage"), "input_tokens", "output_tokens"))


def _limited(why: str) -> bool:
    return any(word in why for word in ("usage limit", "429", "rate limit", "503"))


def _said(seen: list[Event]) -> str:
    items = [inner(event, "item") for event in seen if text(event, "type") == "item.completed"]
    said = [text(item, "text") for item in items if text(item, "type") == "agent_message"]
    return said[-1] if said else ""


def _hooks(job: Job) -> dict[str, object]:
    if not job.stop_command:
        return {"hooks": {}}
    hook = {"type": "command", "command": shlex.join(job.stop_command), "timeout": HOOK_SECONDS}
    return {"hooks": {"Stop": [{"hooks": [hook]}]}}


def _config(job: Job) -> str:
    """The project is not trusted: trusted, its own .codex/ would be read, hooks and all."""
    model = job.environ.get("OPENAI_MODEL")
    key = next((name for name in KEYS if name in job.environ), None)
    lines = [f"model = {json.dumps(model)}"] if model else []
    if key:
        lines.append('model_provider = "lockgate"')
    lines += [
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[features]",
        "plugins = false",
        "apps = false",
        f"[projects.{json.dumps(job.workspace)}]",
        'trust_level = "untrusted"',
    ]
    if job.mcp_command:
        command, *args = job.mcp_command
        lines += [
            f"[mcp_servers.{programs.SERVER}]",
            f"command = {json.dumps(command)}",
            f"args = {json.dumps(args)}",
            f"env_vars = {json.dumps([programs.SOCKET])}",
            f"startup_timeout_sec = {programs.STARTS_WITHIN}",
            f"tool_timeout_sec = {programs.TOOL_SECONDS}",
        ]
    if key:
        lines += [
            "[model_providers.lockgate]",
            'name = "lockgate"',
            f"base_url = {json.dumps(job.environ.get('OPENAI_BASE_URL', URL))}",
            f"env_key = {json.dumps(key)}",
            'wire_api = "responses"',
            f"request_max_retries = {RETRIES}",
            f"stream_max_retries = {RETRIES}",
        ]
    return "\n".join(lines) + "\n"


HARNESS = Harness(
    install="npm install -g @openai/codex@0.166.0",
    find=find,
    launch=launch,
    read=read,
    variables=VARIABLES,
    keys=(*KEYS, TOKEN),
)
