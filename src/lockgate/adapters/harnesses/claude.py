"""Claude Code: headless with a stream of events, resumed by its session id."""

import json
import shlex
from functools import partial

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.programs import (
    UNKNOWN,
    Event,
    events,
    inner,
    items,
    limited_until,
    number,
    shortened,
    text,
    unexplained,
    whole,
)
from lockgate.core.model.agents import Ending, Exit, Job, Launch, Report, Usage

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
VARIABLES = (*KEYS, "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL")
SWITCHES = {
    "IS_SANDBOX": "1",  # without it root may not skip permissions
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_BUG_COMMAND": "1",
    "DISABLE_FEEDBACK_COMMAND": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "4",  # ten, its own choice, last for minutes
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",  # see --add-dir below
    "ENABLE_TOOL_SEARCH": "false",  # with it Lockgate's tools are told of only when searched for
}
HOOK_SECONDS = 120
LIMITED = r'\{"type":"system","subtype":"api_retry".*"error_status":(429|503|529)\b'
WAIT_STATUSES = (429, 503, 529)
REFUSED_STATUSES = (401, 403)


def launch(found: Found, job: Job) -> Launch:
    """No settings but ours are read, the project's as little as the HOME's.

    With them the project's CLAUDE.md would be left out; that of an added directory is not.
    """
    headless = ("-p", "--output-format", "stream-json", "--verbose")
    return Launch(
        argv=(
            *found.argv,
            *(() if job.interactive else headless),
            *("--add-dir", job.workspace, "--append-system-prompt", programs.guide(job)),
            "--dangerously-skip-permissions",
            *("--setting-sources", "", "--settings", json.dumps(_settings(job))),
            *("--strict-mcp-config", "--mcp-config", json.dumps(_servers(job))),
            *(("--resume", job.native) if job.native else ()),
            *((programs.prompt_argument(job),) if job.interactive and job.prompt else ()),
        ),
        env={**SWITCHES, **job.environ},
        stdin=None if job.interactive else job.prompt,
        files=programs.prompt_file(job) if job.interactive else {},
        kept={".claude.json": json.dumps(_first_state(job))},
        limited=LIMITED,
    )


def read(output: str, exit: Exit, now: float) -> Report:
    seen = list(events(output))
    last = {text(event, "type"): event for event in seen}
    result = last.get("result", {})
    failed = result.get("is_error") is True
    words = text(result, "result") or text(result, "subtype")
    usage = _total(result) if result else _spent(seen)
    why = words if failed else unexplained(exit, output, finished=bool(result))
    limit = _limit(seen, result, now) if failed or not result else None
    return Report(
        native=text(result or last.get("system", {}), "session_id"),
        usage=usage,
        cumulative=bool(result),
        exhausted=_exhausted(result),
        limited_until=_next_try(seen, now) if exit.ending is Ending.LIMITED else limit,
        refused=failed and _is_refused(result),
        failure=shortened(why),
        said="" if failed else shortened(words if result else _last_words(seen)),
    )


def _settings(job: Job) -> dict[str, object]:
    settings: dict[str, object] = {"skipDangerousModePermissionPrompt": True}
    if job.stop_command:
        hook = {"type": "command", "command": shlex.join(job.stop_command), "timeout": HOOK_SECONDS}
        settings["hooks"] = {"Stop": [{"hooks": [hook]}]}
    return settings


def _servers(job: Job) -> dict[str, object]:
    """Those of the project are left out."""
    if not job.mcp_command:
        return {"mcpServers": {}}
    command, *args = job.mcp_command
    return {"mcpServers": {programs.SERVER: {"command": command, "args": args}}}


def _first_state(job: Job) -> dict[str, object]:
    """What its first-run questions would ask, answered; a person who attaches meets none."""
    key = job.environ.get("ANTHROPIC_API_KEY", "")
    return {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [key[-20:]] if key else []},
        "projects": {job.workspace: {"hasTrustDialogAccepted": True}},
    }


def _total(result: Event) -> Usage:
    """Of all runs of the session together, as the program counts cost and its models' tokens."""
    kinds = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    models = inner(result, "modelUsage")
    tokens = sum(whole(inner(models, name), *kinds) for name in models)
    return Usage(number(result, "total_cost_usd"), tokens)


def _spent(seen: list[Event]) -> Usage:
    """Of this run alone, where it was ended before it could sum up: each message's last count."""
    kinds = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
    said = [inner(event, "message") for event in seen if text(event, "type") == "assistant"]
    counts = {text(message, "id"): whole(inner(message, "usage"), *kinds) for message in said}
    return Usage(tokens=sum(counts.values()))


def _exhausted(result: Event) -> bool:
    if text(result, "terminal_reason") == "prompt_too_long":
        return True
    return result.get("is_error") is True and "prompt is too long" in text(result, "result").lower()


def _limit(seen: list[Event], result: Event, now: float) -> float | None:
    told = [inner(it, "rate_limit_info") for it in seen if text(it, "type") == "rate_limit_event"]
    if told and text(told[-1], "status") == "rejected":
        return number(told[-1], "resetsAt") or UNKNOWN
    words = text(result, "result")
    if number(result, "api_error_status") in WAIT_STATUSES or "limit reached" in words:
        return limited_until(words, now)
    return None


def _next_try(seen: list[Event], now: float) -> float:
    """When it would have tried again, where we ended its waiting."""
    waits = [number(it, "retry_delay_ms") for it in seen if text(it, "subtype") == "api_retry"]
    return now + waits[-1] / 1000 if waits and waits[-1] else UNKNOWN


def _is_refused(result: Event) -> bool:
    if number(result, "api_error_status") in REFUSED_STATUSES:
        return True
    return text(result, "result").startswith("Not logged in")


def _last_words(seen: list[Event]) -> str:
    said = [inner(event, "message") for event in seen if text(event, "type") == "assistant"]
    words = [text(block, "text") for message in said for block in items(message, "content")]
    return next((it for it in reversed(words) if it), "")


HARNESS = Harness(
    install="npm install -g @anthropic-ai/claude-code@2.1.325",
    find=partial(programs.find, "claude"),
    launch=launch,
    read=read,
    variables=VARIABLES,
    keys=KEYS,
)
