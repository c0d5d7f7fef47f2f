"""What is read from an agent's output: whole, cut, or none at all."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from lockgate.adapters.harnesses import Registry
from lockgate.adapters.harnesses.programs import UNKNOWN, limited_until
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import Ending, Exit, Report, Usage

NONE = Settings(formula="none", gates=())
NOW = datetime(2026, 11, 16, 14, 30, tzinfo=UTC).timestamp()
REGISTRY = Registry(now=lambda: NOW)
GOOD = Exit(ending=Ending.EXITED, code=0)
BAD = Exit(ending=Ending.EXITED, code=1)
ENDED = Exit(ending=Ending.WALL_CLOCK)

Line = Mapping[str, object] | str


def lines(*them: Line) -> str:
    return "".join((it if isinstance(it, str) else json.dumps(it)) + "\n" for it in them)


def read(agent: str, exit: Exit, *them: Line) -> Report:
    return REGISTRY.read(agent, NONE, lines(*them), exit)


# --- whole runs, as the programs print them -----------------------------------------------------

USED = {"inputTokens": 900, "outputTokens": 40, "cacheReadInputTokens": 60, "costUSD": 0.02}
CLAUDE: tuple[Line, ...] = (
    {"type": "system", "subtype": "init", "session_id": "c-1"},
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "usage": {"input_tokens": 900, "output_tokens": 1},
            "content": [{"type": "tool_use", "name": "Bash"}],
        },
    },
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "usage": {"input_tokens": 900, "output_tokens": 40},
            "content": [{"type": "text", "text": "Nearly."}],
        },
    },
    {"type": "user", "message": {"content": "done"}},
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Done.",
        "session_id": "c-1",
        "total_cost_usd": 0.02,
        "modelUsage": {"a": USED, "b": USED},
    },
)
CODEX: tuple[Line, ...] = (
    {"type": "thread.started", "thread_id": "x-1"},
    {"type": "item.completed", "item": {"type": "error", "message": "only a warning"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 100}},
)
GEMINI: tuple[Line, ...] = (
    "YOLO mode is enabled.",
    {"type": "init", "session_id": "g-1"},
    {"type": "message", "role": "assistant", "content": "I look."},
    {"type": "tool_use", "tool_name": "x"},
    {"type": "error", "severity": "warning", "message": "Agent execution blocked"},
    {"type": "message", "role": "assistant", "content": "Do"},
    {"type": "message", "role": "assistant", "content": "ne."},
    {"type": "result", "status": "success", "stats": {"total_tokens": 1000}},
)


def _step(reason: str) -> Line:
    tokens = {"input": 400, "output": 50, "reasoning": 30, "cache": {"read": 20, "write": 0}}
    part = {"reason": reason, "tokens": tokens, "cost": 0.01}
    return {"type": "step_finish", "sessionID": "o-1", "part": part}


OPENCODE: tuple[Line, ...] = (
    _step("tool-calls"),
    {"type": "text", "sessionID": "o-1", "part": {"text": "Done."}},
    _step("stop"),
)
AIDER: tuple[Line, ...] = (
    "Aider v0.86.2",
    "Tokens: 1.2k sent, 50 received. Cost: $0.0030 message, $0.0030 session.",
    "Tokens: 2.3k sent, 300 cache hit, 1,050 received. Cost: $0.0040 message, $0.0070 session.",
    "Applied edit to hello.txt",
)
WHOLE = {
    "claude": (
        CLAUDE,
        Report(native="c-1", usage=Usage(0.02, 2000), cumulative=True, said="Done."),
    ),
    "codex": (CODEX, Report(native="x-1", usage=Usage(0, 1000), cumulative=True, said="Done.")),
    "gemini": (GEMINI, Report(native="g-1", usage=Usage(0, 1000), said="Done.")),
    "opencode": (OPENCODE, Report(native="o-1", usage=Usage(0.02, 1000), said="Done.")),
    "aider": (AIDER, Report(usage=Usage(0.007, 4600), said="Applied edit to hello.txt")),
}


@pytest.mark.parametrize("agent", WHOLE)
def test_a_run_that_went_well_is_read(agent) -> None:
    output, report = WHOLE[agent]

    assert read(agent, GOOD, *output) == report


@pytest.mark.parametrize("agent", [*WHOLE, "scripted"])
def test_output_that_is_cut_anywhere_breaks_nothing(agent) -> None:
    whole = lines(*(WHOLE[agent][0] if agent in WHOLE else CODEX))

    for begin in range(0, len(whole), 13):
        for end in range(begin, len(whole), 17):
            report = REGISTRY.read(agent, NONE, whole[:begin] + whole[end:], ENDED)
            assert report.usage.tokens <= 4600


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\n",
        "{}\n",
        "{\n",
        '{"type": []}\n',
        '{"type": "result", "usage": 3, "stats": null}\n',
        '{"type": "result", "modelUsage": {"a": 7}, "total_cost_usd": NaN, "is_error": "no"}\n',
        '{"type": "assistant", "message": {"content": [7, {"text": 7}]}}\n',
        '{"type": "turn.failed", "error": "text"}\n',
        "[" * 100_000,
        '{"a":' * 100_000,
        "\x00\udcff\n",
    ],
)
@pytest.mark.parametrize("agent", [*WHOLE, "scripted"])
def test_output_of_any_kind_breaks_nothing(agent, output) -> None:
    for exit in (GOOD, BAD, ENDED, Exit(ending=Ending.EXITED)):
        assert REGISTRY.read(agent, NONE, output, exit).usage == Usage()


# --- runs that went wrong -----------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
def test_an_end_without_a_result_is_a_failure_whatever_the_code(agent) -> None:
    assert read(agent, GOOD).failure == "it ended without a result"
    assert read(agent, GOOD, "Interrupted by a signal").failure == "Interrupted by a signal"
    assert read(agent, BAD).failure == "it exited 1"
    assert read(agent, Exit(ending=Ending.EXITED)).failure == "a signal ended it"


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "aider", "scripted"])
def test_what_we_ended_is_no_failure_of_the_agent(agent) -> None:
    assert read(agent, ENDED).failure == ""


def test_claude_that_was_ended_still_says_what_it_spent() -> None:
    report = read("claude", ENDED, *CLAUDE[:-1])

    assert report.native == "c-1"
    assert (report.usage, report.cumulative) == (Usage(tokens=940), False)
    assert report.said == "Nearly."


def failed(**result: object) -> Report:
    fields = {"type": "result", "subtype": "success", "is_error": True, "session_id": "c-1"}
    return read("claude", BAD, {**fields, **result})


def test_claudes_failures_are_told_apart() -> None:
    assert failed(result="Invalid API key", api_error_status=401).failure == "Invalid API key"
    assert failed(result="", subtype="error_max_turns").failure == "error_max_turns"
    assert failed(result="Invalid API key", api_error_status=401).limited_until is None
    assert failed(result="slow down", api_error_status=429).limited_until == UNKNOWN
    assert failed(result="Claude AI usage limit reached|1794840000").limited_until == 1794840000
    assert failed(result="x", terminal_reason="prompt_too_long").exhausted
    assert failed(result="Prompt is too long").exhausted
    assert not failed(result="something else").exhausted


@pytest.mark.parametrize(
    ("info", "until"),
    [
        ({"status": "rejected", "resetsAt": 1794840000}, 1794840000),
        ({"status": "rejected"}, UNKNOWN),
        ({"status": "allowed_warning", "resetsAt": 1794840000}, None),
    ],
)
def test_claude_says_until_when_it_is_limited(info, until) -> None:
    event = {"type": "rate_limit_event", "rate_limit_info": info}

    result = {"type": "result", "is_error": True, "result": "You've hit your limit"}
    assert read("claude", BAD, event, result).limited_until == until
    assert read("claude", GOOD, event, *CLAUDE).limited_until is None


@pytest.mark.parametrize(
    ("agent", "line", "failure"),
    [
        ("codex", {"type": "turn.failed", "error": {"message": "status 401"}}, "status 401"),
        ("codex", {"type": "error", "message": "Reconnecting"}, "Reconnecting"),
        ("gemini", {"type": "error", "severity": "error", "message": "loop"}, "loop"),
        ("gemini", {"type": "result", "status": "error", "error": {"message": "no"}}, "no"),
        ("opencode", {"type": "error", "error": {"name": "APIError"}}, "APIError"),
        (
            "opencode",
            {"type": "error", "error": {"name": "APIError", "data": {"message": "bad key"}}},
            "APIError: bad key",
        ),
        ("opencode", {"type": "error", "error": "?"}, "it reported an error"),
        ("aider", "litellm.AuthenticationError: bad key", "litellm.AuthenticationError: bad key"),
    ],
)
def test_why_an_agent_failed_is_in_its_own_words(agent, line, failure) -> None:
    report = read(agent, BAD, line)

    assert report.failure == failure
    assert report.limited_until is None
    assert not report.exhausted


@pytest.mark.parametrize(
    ("agent", "line"),
    [
        ("codex", {"type": "turn.failed", "error": {"message": "last status: 429"}}),
        ("gemini", {"type": "result", "status": "error", "error": {"message": "quota"}}),
        ("opencode", {"type": "error", "error": {"data": {"message": "Too Many Requests"}}}),
        ("aider", "litellm.RateLimitError: slow down"),
    ],
)
def test_a_limit_that_does_not_say_until_when(agent, line) -> None:
    assert read(agent, BAD, line).limited_until == UNKNOWN


@pytest.mark.parametrize(
    ("agent", "line"),
    [
        ("codex", {"type": "turn.failed", "error": {"message": "the context window is full"}}),
        (
            "gemini",
            {
                "type": "result",
                "error": {"message": "exceeds the maximum number of tokens allowed"},
            },
        ),
        ("opencode", {"type": "error", "error": {"name": "ContextOverflowError"}}),
        ("aider", "litellm.ContextWindowExceededError: too much"),
        ("aider", "Model openai/x has hit a token limit!"),
    ],
)
def test_a_context_that_is_full(agent, line) -> None:
    assert read(agent, GOOD, line).exhausted


def test_long_last_words_are_shortened_to_their_end() -> None:
    long = {"type": "item.completed", "item": {"type": "agent_message", "text": "x" * 9000 + "!"}}

    said = read("codex", GOOD, CODEX[0], long, CODEX[-1]).said

    assert len(said) == 2000
    assert said[0] == "…"
    assert said[-1] == "!"


# --- when a limit ends --------------------------------------------------------------------------


def utc(day: int, hour: int, minute: int = 0, month: int = 11) -> float:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("words", "until"),
    [
        ("usage limit reached|1794840000", 1794840000),
        ("You've hit your limit · resets 8pm (UTC)", utc(16, 20)),
        ("You've hit your limit · resets 8am (UTC)", utc(17, 8)),
        ("limit · resets at 3:15pm (Europe/Berlin)", utc(17, 14, 15)),
        ("limit · resets at 3:45pm (Europe/Berlin)", utc(16, 14, 45)),
        ("weekly limit · resets Nov 20, 5am (UTC)", utc(20, 5)),
        ("try again at Dec 1st, 2026 12:05 AM (UTC).", utc(1, 0, 5, month=12)),
        ("Please retry in 34.5s.", NOW + 34.5),
        ("Your quota will reset after 5h30m10s.", NOW + 5 * 3600 + 30 * 60 + 10),
        ("try again in 2 days 3 hours 4 minutes.", NOW + 2 * 86400 + 3 * 3600 + 240),
        ("try again in 3 moons", UNKNOWN),
        ("resets Foo 20, 5am (UTC)", UNKNOWN),
        ("resets Nov 31, 5am (UTC)", UNKNOWN),
        ("resets 8:75pm (UTC)", UNKNOWN),
        ("slow down", UNKNOWN),
    ],
)
def test_when_a_limit_ends_is_read_from_words(words, until) -> None:
    assert limited_until(words, NOW) == until


def test_a_time_without_a_zone_is_this_machines() -> None:
    for words in ("try again at 5:37 AM.", "resets 5:37am (No/Where)"):
        until = limited_until(words, NOW)
        assert NOW < until <= NOW + 86400
        assert datetime.fromtimestamp(until).astimezone().strftime("%H:%M") == "05:37"


@pytest.mark.parametrize(
    ("agent", "line", "code"),
    [
        ("claude", {"type": "result", "is_error": True, "api_error_status": 401}, 1),
        ("claude", {"type": "result", "is_error": True, "api_error_status": 403}, 1),
        (
            "claude",
            {
                "type": "result",
                "is_error": True,
                "api_error_status": None,
                "result": "Not logged in · Please run /login",
            },
            1,
        ),
        (
            "codex",
            {"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized: no"}},
            1,
        ),
        (
            "opencode",
            {
                "type": "error",
                "error": {"name": "APIError", "data": {"message": "no", "statusCode": 401}},
            },
            1,
        ),
        ("gemini", {"type": "error", "message": "no"}, 145),
        ("gemini", {"type": "error", "message": "API key not valid."}, 144),
        ("aider", "litellm.AuthenticationError: no", 0),
        ("scripted", {"type": "refused", "text": "no"}, 1),
    ],
)
def test_a_refused_login_is_told_from_other_failures(agent, line, code) -> None:
    output = line if isinstance(line, str) else json.dumps(line)

    report = REGISTRY.read(agent, NONE, output, Exit(ending=Ending.EXITED, code=code))

    assert report.refused
    assert report.limited_until is None


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode", "gemini", "aider", "scripted"])
@pytest.mark.parametrize("said", ["429 slow down", "test_401.py failed", "line 403: broken"])
def test_another_failure_is_no_refused_login(agent, said) -> None:
    report = REGISTRY.read(agent, NONE, said, Exit(ending=Ending.EXITED, code=1))

    assert not report.refused
