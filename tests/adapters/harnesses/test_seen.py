"""What the real programs were seen to do under Lockgate, said again without them."""

import json
from collections.abc import Mapping

from lockgate.adapters.harnesses import gemini, opencode
from lockgate.adapters.harnesses.harness import Found
from lockgate.core.model.agents import Ending, Exit, Job, Report
from lockgate.core.model.task import Role

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
