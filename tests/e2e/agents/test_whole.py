"""The real agents through the whole of Lockgate: its workspace, its sandbox, its gates."""

import pytest

from lockgate.core.model.task import Role, Status
from tests.e2e.agents.whole import (
    PATIENCE,
    REVIEW,
    at_work,
    by_agent,
    reviews,
    shell,
    with_hooks,
    without_hooks,
    works,
)

pytestmark = [pytest.mark.agents, pytest.mark.usefixtures("no_way_out")]

TRY = "A first try."
SENT_BACK = "Gate evaluation found issues"
ASKED = "You stopped, and nothing was handed in"


@by_agent
def test_an_agent_that_fails_its_gate_mends_it_in_the_same_session(case, tmp_path) -> None:
    first = works(case, "nothing", says=TRY)
    second = works(case, "hello", before="nothing")
    with at_work(case, tmp_path, [*first, *second]) as it:
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        one, two = it.sessions()
        assert one.native, it.orchestra.story()
        assert two.native == one.native
        assert any(SENT_BACK in asked and TRY in asked for asked in it.requests())
        signalled, advanced = it.types().count("TaskCompletionSignaled"), "auto.advanced"
        assert (signalled, advanced in it.types()) == ((2, False) if case.hooks else (0, True))
        tokens = 1050 * len(first)
        assert one.tokens == tokens
        assert two.tokens == (2 * tokens if case.cumulative else tokens)
        assert it.task.tokens == 2 * tokens
        assert (one.usd > 0) == case.costs
        assert it.task.usd == pytest.approx(2 * one.usd)
        assert it.orchestra.left_over() == []


@with_hooks
def test_an_agent_that_stops_without_a_handoff_is_told_once_and_writes_it(case, tmp_path) -> None:
    with at_work(case, tmp_path, [{"text": TRY}, *works(case, "hello")]) as it:
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        assert len(it.sessions()) == 1
        told = [asked for asked in it.requests() if "TASK.md has no '## Handoff'" in asked]
        assert told
        assert TRY in told[0]
        assert it.types().count("TaskCompletionSignaled") == 1
        assert "auto.advanced" not in it.types()


@without_hooks
def test_an_agent_without_a_hook_that_stops_politely_is_asked_in_the_same_conversation(
    case, tmp_path
) -> None:
    with at_work(case, tmp_path, [{"text": TRY}, *works(case, "hello")]) as it:
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        first, second = it.sessions()
        assert first.native == second.native != ""
        assert (first.asked, second.asked) == (False, True)
        told = [asked for asked in it.requests() if ASKED in asked]
        assert told
        assert TRY in told[0]
        assert (it.task.crash_count, it.task.failed_attempts) == (0, 0)


@with_hooks
def test_an_agent_with_a_hook_that_stops_again_has_been_asked_and_counts(case, tmp_path) -> None:
    """Its second session is asked by its hook as well, and hands in."""
    twice = [{"text": TRY}, {"text": "I have stopped."}]
    answers = [*twice, {"text": "Again."}, *works(case, "hello")]
    with at_work(case, tmp_path, answers) as it:
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        assert [session.asked for session in it.sessions()] == [True, True]
        log = it.orchestra.lockgate("task", "log", it.id).stdout
        assert "the agent stopped without handing in" in log
        assert "It said: I have stopped." in log
        assert it.types().count("agent.crashed") == 1


@by_agent
def test_an_agent_asks_a_human_and_goes_on_with_the_answer(case, tmp_path) -> None:
    if case.agent == "aider":
        pytest.skip("needs a shell: aider's model can only edit files")
    ask = "printf '## Questions\\nWhich word?\\n' >> TASK.md; lockgate task update --status"
    asks = [shell(case, f"{ask} clarification"), {"text": "I wait for you."}]
    with at_work(case, tmp_path, [*asks, *works(case, "hello")]) as it:
        it.orchestra.until(lambda: it.task.status is Status.CLARIFICATION, PATIENCE)
        it.orchestra.until(lambda: it.orchestra.settled(it.id), PATIENCE)
        assert it.task.question == "Which word?"
        first = it.requests()[0]
        assert "When to ask: where only a human can decide" in first

        answered = it.orchestra.lockgate("answer", it.id, "-m", "Say hello, please.")
        assert answered.returncode == 0, answered.stderr
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        one, two = it.sessions()
        assert two.native == one.native != ""
        told = [asked for asked in it.requests() if "Say hello, please." in asked]
        assert told
        assert "I wait for you." in told[0], "the same conversation"
        assert (it.task.crash_count, it.task.failed_attempts) == (0, 0)


WAIT = "while [ ! -e ~/go ]; do sleep 0.1; done"


@by_agent
@pytest.mark.parametrize("now", [False, True], ids=["next turn", "now"])
def test_an_agent_gets_a_word_while_it_works_and_goes_on_with_it(case, tmp_path, now) -> None:
    if case.agent == "aider":
        pytest.skip("needs a shell: aider's model can only edit files")
    answers = [shell(case, f"touch ~/here; {WAIT}"), *works(case, "hello"), {"text": "Heard."}]
    with at_work(case, tmp_path, answers) as it:
        home = it.orchestra.home / "homes" / it.id
        it.orchestra.until((home / "here").exists, PATIENCE)

        flag = ("--now",) if now else ()
        said = it.orchestra.lockgate("say", it.id, *flag, "Be kind to marzipan.")
        assert said.returncode == 0, said.stderr
        if now:  # what the model has left to say is for the session that hears the word
            it.orchestra.until(lambda: it.sessions()[0].ended is not None, PATIENCE)
        (home / "go").touch()
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        told = [asked for asked in it.requests() if "Be kind to marzipan." in asked]
        assert told
        assert "You implement a task." in told[0], "the same conversation"
        assert not now or "A human has a word for you." in told[0]
        # gemini keeps a tool's call only once that has ended
        assert "touch ~/here" in told[0] or (case.agent, now) == ("gemini", True)
        assert {session.native for session in it.sessions()} == {it.sessions()[0].native}
        assert it.types().count("words.heard") == 1
        assert (it.task.crash_count, it.task.failed_attempts) == (0, 0)
        sessions = 1 if case.hooks and not now else 2
        assert len(it.sessions()) == sessions


@by_agent
def test_an_agent_reviews_with_its_own_file_tool(case, tmp_path) -> None:
    with at_work(case, tmp_path, [*works(case, "hello"), *reviews(case)], gates=REVIEW) as it:
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        (reviewer,) = it.sessions(Role.REVIEWER)
        (worker,) = it.sessions()
        assert reviewer.native != worker.native
        assert it.task.tokens == worker.tokens + reviewer.tokens
        assert it.orchestra.left_over() == []
