"""What a human says to a working agent: queued, shown, edited, delivered, once."""

import pytest

from lockgate.core.lifecycle.decision import EndSessions, MirrorTask, SpawnAgent
from lockgate.core.lifecycle.sessions import Place, session_ended, session_started
from lockgate.core.lifecycle.words import edited, heard, said, waiting_words, word_changed
from lockgate.core.model.agents import End, Ending, Exit, Report
from lockgate.core.model.events import (
    AgentCrashed,
    ContextChanged,
    GoalChanged,
    SummaryChanged,
    WordChanged,
    WordSaid,
    WordsHeard,
)
from lockgate.core.model.task import Actor, Role, Status, Task, Word
from tests.given import HANDOFF, NOW, a_session, a_task, evidence, refused, taken

S = Status
ONE, TWO = Word(5, "use blue", NOW), Word(7, "and a test", NOW + 1)


def by_a_human(task: Task):
    return evidence(task, "", Actor.HUMAN)


def test_a_word_waits_for_the_agents_next_turn_and_ends_nothing() -> None:
    task = a_task(words=(ONE,))

    decision = taken(said(by_a_human(task), " and a test \n", at_once=False, resumes=False))

    seen = by_a_human(task)
    assert decision.task.words == (ONE, Word(task.rev + 1, "and a test", seen.now))
    assert decision.task.generation == task.generation
    assert decision.effects == (MirrorTask(),)
    assert decision.events == (WordSaid("and a test", at_once=False),)


def test_a_word_that_cannot_wait_ends_the_session_and_goes_on_in_the_same_conversation() -> None:
    task = a_task()

    decision = taken(said(by_a_human(task), "stop that", at_once=True, resumes=True))

    generation = task.rev + 1
    assert decision.task.generation == generation
    assert decision.effects == (
        MirrorTask(),
        EndSessions(task.rev, Role.WORKER),
        SpawnAgent(Role.WORKER, generation),
    )


@pytest.mark.parametrize(
    ("task", "at_once", "resumes", "why"),
    [
        (a_task(S.DONE), False, True, "it is done"),
        (a_task(S.CANCELLED), False, True, "it is cancelled"),
        (a_task(taken_over=True), False, True, "you have taken it over"),
        (a_task(), True, False, "cannot take its conversation up again"),
        (a_task(S.AGENT_REVIEW), True, True, "no agent works on it"),
        (a_task(dead=True), True, True, "no agent works on it"),
    ],
)
def test_a_word_that_nobody_will_hear_is_not_taken(task, at_once, resumes, why) -> None:
    assert why in refused(said(by_a_human(task), "hello", at_once=at_once, resumes=resumes)).why


def test_an_empty_word_is_not_taken() -> None:
    assert "empty" in refused(said(by_a_human(a_task()), " \n", at_once=False, resumes=True)).why


def test_the_queue_can_be_edited_by_the_place_of_a_word() -> None:
    task = a_task(words=(ONE, TWO))

    changed = taken(word_changed(by_a_human(task), 2, " and two tests "))
    dropped = taken(word_changed(by_a_human(task), 1, ""))

    assert [it.text for it in changed.task.words] == ["use blue", "and two tests"]
    assert changed.events == (WordChanged("and a test", "and two tests"),)
    assert dropped.task.words == (TWO,)
    assert dropped.events == (WordChanged("use blue", ""),)


@pytest.mark.parametrize("place", [0, 2])
def test_a_place_that_no_word_has_is_refused(place) -> None:
    why = refused(word_changed(by_a_human(a_task(words=(ONE,))), place, "x")).why

    assert f"no word {place}" in why


def test_a_session_that_begins_has_heard_what_its_prompt_said_and_no_more() -> None:
    task = a_task(words=(ONE, TWO))

    begun = taken(
        session_started(evidence(task), SpawnAgent(Role.WORKER, 3), "0" * 64, Place(heard=5))
    )

    assert begun.task.words == (TWO,)
    assert WordsHeard(a_session().id, ("use blue",)) in begun.events


def test_a_session_that_is_told_nothing_hears_nothing() -> None:
    begun = taken(session_started(evidence(a_task()), SpawnAgent(Role.WORKER, 3), "0" * 64))

    assert not any(isinstance(it, WordsHeard) for it in begun.events)


def test_words_are_delivered_inside_a_session_once() -> None:
    seen = evidence(a_task(words=(ONE, TWO)), session=a_session())

    decision = taken(heard(seen, 5))

    assert decision.task.words == (TWO,)
    assert decision.events == (WordsHeard(a_session().id, ("use blue",)),)
    assert "no message waits" in refused(heard(evidence(a_task(), session=a_session()), 5)).why


def test_an_older_session_hears_nothing() -> None:
    seen = evidence(a_task(words=(ONE,)), session=a_session(generation=2))

    assert "newer session" in refused(heard(seen, 5)).why


@pytest.mark.parametrize("status", Status)
def test_words_wait_for_an_agent_that_works(status) -> None:
    waiting = waiting_words(a_task(status, words=(ONE,)))

    assert waiting == ((ONE,) if status is S.WORKING else ())


@pytest.mark.parametrize("body", ["", HANDOFF])
def test_an_agent_that_stops_while_a_word_waits_goes_on_with_the_word(body) -> None:
    task = a_task(words=(ONE,), crash_count=1)
    end = End(Exit(ending=Ending.EXITED, code=0), Report(said="Done."))

    decision = taken(session_ended(evidence(task, body, session=a_session()), end))

    assert (decision.task.status, decision.task.crash_count) == (S.WORKING, 1)
    assert decision.task.words == (ONE,)
    assert decision.effects[-1] == SpawnAgent(Role.WORKER, task.rev + 1)


def test_a_word_does_not_excuse_a_crash() -> None:
    end = End(Exit(ending=Ending.EXITED, code=1), Report(failure="no such model"))

    decision = taken(session_ended(evidence(a_task(words=(ONE,)), session=a_session()), end))

    assert any(isinstance(it, AgentCrashed) for it in decision.events)


# --- the task itself is edited --------------------------------------------------------------------


def test_another_goal_is_told_to_an_agent_that_has_begun() -> None:
    task = a_task(summary="Fix it by a cookie")

    decision = taken(edited(by_a_human(task), "Fix the logout", "c", "c"))

    assert (decision.task.goal, decision.task.summary) == ("Fix the logout", "Fix the logout")
    [word] = decision.task.words
    assert "Its goal is now: Fix the logout" in word.text
    assert decision.events == (SummaryChanged("Fix the logout"), GoalChanged("Fix the logout"))


def test_another_context_leaves_the_goal_and_the_agents_own_summary() -> None:
    task = a_task(summary="Fix it by a cookie")

    decision = taken(edited(by_a_human(task), task.goal, "old", "new"))

    assert (decision.task.goal, decision.task.summary) == (task.goal, "Fix it by a cookie")
    assert decision.events == (ContextChanged("new"),)
    assert decision.task.words[0].text.endswith("Its Context is now:\nnew")


@pytest.mark.parametrize(("context", "told"), [("", "(none)"), ("x" * 30_000, "x" * 20_000 + "…")])
def test_an_agent_is_told_a_context_that_it_can_read(context, told) -> None:
    decision = taken(edited(by_a_human(a_task()), a_task().goal, "old", context))

    assert decision.task.words[0].text.endswith(f"is now:\n{told}")


def test_a_task_that_has_not_begun_has_nobody_to_tell() -> None:
    task = a_task(S.PENDING, pinned=None)

    assert taken(edited(by_a_human(task), "Another goal", "", "")).task.words == ()


def test_an_edit_that_changes_nothing_or_comes_too_late_is_refused() -> None:
    same = edited(by_a_human(a_task()), a_task().goal, "c", "c")
    late = edited(by_a_human(a_task(S.DONE)), "Another goal", "", "")

    assert "neither" in refused(same).why
    assert "it is done" in refused(late).why
