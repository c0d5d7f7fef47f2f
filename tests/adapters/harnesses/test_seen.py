"""What the real programs were seen to do under Lockgate, said again without them."""

import json
import re
from collections.abc import Mapping
from importlib import import_module

import pytest

from lockgate.adapters.harnesses import Registry, gemini, opencode
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.registry import MODULES
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import Ending, Exit, Job, Report
from lockgate.core.model.task import Role

NONE = Settings(formula="none", gates=())
NOW = 1_800_000_000.0
INIT = {"type": "init", "session_id": "g-1"}
ASKED = {"type": "message", "role": "user", "content": "Go."}
FAILED = {"type": "result", "status": "error", "error": {"message": "no"}}


def _read(*events: Mapping[str, object]) -> str:
    output = "\n".join(map(json.dumps, events))
    return gemini.read(output, Exit(ending=Ending.EXITED, code=1), NOW).native


def test_a_gemini_whose_model_never_answered_cannot_be_resumed() -> None:
    assert _read(INIT, ASKED, FAILED) == ""
    assert _read(INIT, ASKED, {"type": "tool_use", "tool_name": "t"}) == "g-1"
    assert _read(INIT, ASKED, {"type": "message", "role": "assistant", "content": "A"}) == "g-1"


def test_a_gemini_in_a_sandbox_tells_the_http_status_on_stderr_alone() -> None:
    """Its exit code would be 145, which a sandbox gives for a signal."""
    signalled = Exit(ending=Ending.EXITED, code=None)
    told = {status: _failed(status, signalled) for status in ("401", "403", "429", "500")}

    assert {status for status, it in told.items() if it.refused} == {"401", "403"}
    assert {status for status, it in told.items() if it.limited_until is not None} == {"429"}


def test_a_status_that_a_gemini_got_over_says_nothing_of_its_end() -> None:
    result = json.dumps({"type": "result", "status": "success"})
    output = f"{result}\nError when talking to Gemini API {{\n  status: 401\n}}\n"

    assert not gemini.read(output, Exit(ending=Ending.EXITED, code=0), NOW).refused


def _failed(status: str, exit: Exit) -> Report:
    output = (
        f"{json.dumps(FAILED)}\n_ApiError: no\n    at it (a.js:401:1) {{\n  status: {status}\n}}\n"
    )
    return gemini.read(output, exit, NOW)


def test_opencode_reaches_a_model_that_it_knows_at_the_address_it_is_told() -> None:
    environ = {"ANTHROPIC_BASE_URL": "http://h/", "OPENCODE_MODEL": "anthropic/m"}
    job = Job(prompt="Go.", role=Role.WORKER, task="t", session="s", environ=environ)

    told = json.loads(opencode.launch(Found(("opencode",), ()), job).env["OPENCODE_CONFIG_CONTENT"])

    assert told["model"] == "anthropic/m"
    assert told["provider"] == {"anthropic": {"options": {"baseURL": "http://h/v1"}}}


def _logs(error: str, small: str = "false") -> str:
    return (
        'timestamp=2026-11-16T22:47:31.865Z level=ERROR run=d1 message="stream error" '
        f"providerID=server modelID=fake session.id=ses_1 small={small} agent=build mode=primary "
        f'error.error="AI_APICallError: {error}"'
    )


def _retries(status: int) -> str:
    about = {"attempt": 1, "max_retries": 4, "retry_delay_ms": 12000, "error_status": status}
    event = {"type": "system", "subtype": "api_retry", **about, "error": "e", "session_id": "c-1"}
    return json.dumps(event, separators=(",", ":"))


def _reconnects(why: str) -> str:
    return f'{{"type":"error","message":"Reconnecting... {why}"}}'


TOO_MANY = "1/3 (exceeded retry limit, last status: 429 Too Many Requests)"
WAITS = [
    ("claude", _retries(429)),
    ("claude", _retries(529)),
    ("claude-live", _retries(429)),
    ("codex", _reconnects(TOO_MANY)),
    ("gemini", "Attempt 1 failed with status 429. Retrying with backoff... _ApiError: no"),
    ("opencode", _logs("slow down")),
    ("aider", "litellm.RateLimitError: RateLimitError: OpenAIException - slow down"),
    ("aider", "Retrying in 32.0 seconds..."),
]
GOES_ON = [
    ("claude", _retries(500)),
    ("claude", json.dumps({"type": "user", "message": _retries(429)})),
    ("codex", _reconnects("waiting for network (Connection failed: error sending request)")),
    ("codex", json.dumps({"type": "item.completed", "item": {"text": _reconnects(TOO_MANY)}})),
    ("gemini", "Attempt 1 failed with status 500. Retrying with backoff..."),
    ("opencode", _logs("Cannot connect to API: Unable to connect.")),
    ("opencode", _logs("slow down", small="true")),
    ("aider", "litellm.InternalServerError: Connection error."),
]


@pytest.mark.parametrize(("agent", "line"), WAITS)
def test_a_line_with_which_a_program_waits_for_a_limit_is_known_as_one(agent, line) -> None:
    assert re.match(_pattern(agent), line)


@pytest.mark.parametrize(("agent", "line"), GOES_ON)
def test_a_server_that_is_down_and_a_limit_in_what_is_quoted_are_no_limit(agent, line) -> None:
    assert not re.match(_pattern(agent), line)


@pytest.mark.parametrize(("agent", "line"), WAITS)
def test_a_program_that_we_ended_while_it_waited_for_a_limit_is_limited(agent, line) -> None:
    output = f"litellm.RateLimitError: slow\n{line}" if agent == "aider" else line

    report = Registry(now=lambda: NOW).read(agent, NONE, output, Exit(ending=Ending.LIMITED))

    assert report.limited_until in ({NOW + 12} if agent.startswith("claude") else {0.0})


def test_an_opencode_that_we_ended_while_it_waited_can_be_resumed() -> None:
    report = opencode.read(_logs('slow \\"down\\"'), Exit(ending=Ending.LIMITED), NOW)

    assert (report.native, report.failure) == ("ses_1", 'AI_APICallError: slow "down"')


def _pattern(agent: str) -> str:
    job = Job(prompt="Go.", role=Role.WORKER, task="t", session="s")
    found = Found(("program",), ())
    harness: Harness = import_module(f"lockgate.adapters.harnesses.{MODULES[agent]}").HARNESS
    return harness.launch(found, job).limited
