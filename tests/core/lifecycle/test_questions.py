"""An agent asks a human: its question is on the task until the agent has the answer."""

import pytest

from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.lifecycle.moves import Move, move
from lockgate.core.lifecycle.sessions import session_ended, session_started
from lockgate.core.model.agents import End, Ending, Exit, Report
from lockgate.core.model.events import QuestionAnswered, QuestionAsked
from lockgate.core.model.task import Actor, Role, Status, Task
from tests.given import a_session, a_task, evidence, taken

S = Status
QUESTIONS = "## Questions\n\nRed or blue?\n"


def asks(task: Task, body: str = QUESTIONS, reason: str = "") -> Task:
    seen = evidence(task, body, Actor.WORKER, session=a_session())
    return taken(move(seen, Move(S.CLARIFICATION, reason))).task


def test_what_the_agent_asks_is_on_the_task_and_in_its_log() -> None:
    seen = evidence(a_task(), QUESTIONS, Actor.WORKER, session=a_session())

    decision = taken(move(seen, Move(S.CLARIFICATION)))

    assert decision.task.question == "Red or blue?"
    assert QuestionAsked("Red or blue?") in decision.events


def test_a_reason_is_the_question_where_the_agent_wrote_none() -> None:
    assert asks(a_task(), "", "Red or blue?").question == "Red or blue?"
    assert asks(a_task(), QUESTIONS, "see TASK.md").question == "Red or blue?"


def test_a_question_that_was_answered_is_not_asked_again() -> None:
    first = asks(a_task())
    human = evidence(first, QUESTIONS, Actor.HUMAN)
    answered = taken(move(human, Move(S.WORKING, directive="Blue."))).task

    assert asks(a_task(spent=answered.spent), QUESTIONS, "And how big?").question == "And how big?"


def test_an_answer_goes_with_its_question_to_the_agent() -> None:
    task = a_task(S.CLARIFICATION, question="Red or blue?")

    decision = taken(
        move(evidence(task, QUESTIONS, Actor.HUMAN), Move(S.WORKING, directive="Blue."))
    )

    assert (decision.task.question, decision.task.directive) == ("Red or blue?", "Blue.")
    assert QuestionAnswered("Blue.") in decision.events


def test_a_directive_that_answers_no_question_is_no_answer() -> None:
    stuck = a_task(S.STUCK)

    decision = taken(move(evidence(stuck, "", Actor.HUMAN), Move(S.WORKING, directive="Go on.")))

    assert not any(isinstance(it, QuestionAnswered) for it in decision.events)


def test_the_agent_that_goes_on_has_the_answer() -> None:
    task = a_task(question="Red or blue?", directive="Blue.")

    begun = taken(session_started(evidence(task), SpawnAgent(Role.WORKER, 3), "0" * 64))

    assert (begun.task.question, begun.task.directive) == ("", "")


def test_an_agent_that_goes_on_by_itself_takes_its_question_back() -> None:
    task = a_task(S.CLARIFICATION, question="Red or blue?")
    seen = evidence(task, QUESTIONS, Actor.WORKER, session=a_session())

    assert taken(move(seen, Move(S.WORKING))).task.question == ""


def test_a_task_that_is_given_up_asks_nothing_any_more() -> None:
    task = a_task(S.CLARIFICATION, question="Red or blue?")

    assert taken(move(evidence(task, "", Actor.HUMAN), Move(S.CANCELLED))).task.question == ""


@pytest.mark.parametrize(
    ("body", "known", "asked"),
    [
        (QUESTIONS, "", "Red or blue?"),
        ("", "", "Which one?"),
        ("", "Red or green?", "Red or green?"),
        (QUESTIONS, "Red or green?", "Red or blue?"),
    ],
)
def test_what_an_agent_wrote_or_said_before_it_left_is_its_question(body, known, asked) -> None:
    task = a_task(S.CLARIFICATION, question=known)
    end = End(Exit(ending=Ending.EXITED, code=0), Report(said="Which one?"))

    decision = taken(session_ended(evidence(task, body, session=a_session()), end))

    assert decision.task.question == asked


def test_an_agent_that_leaves_after_its_question_was_answered_asks_nothing() -> None:
    end = End(Exit(ending=Ending.EXITED, code=0), Report(said="Bye."))

    decision = taken(session_ended(evidence(a_task(S.REVIEWING), session=a_session()), end))

    assert decision.task.question == ""
