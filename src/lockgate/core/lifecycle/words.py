"""What a human says to a task's agent: queued, edited, and taken out once the agent hears it.

Also what an agent asks a human, as the text of its `## Questions`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    Evidence,
    SpawnAgent,
)
from lockgate.core.lifecycle.map import unheard
from lockgate.core.lifecycle.transition import also, stay
from lockgate.core.model.events import (
    ContextChanged,
    Event,
    GoalChanged,
    SummaryChanged,
    WordChanged,
    WordSaid,
    WordsHeard,
)
from lockgate.core.model.task import Role, Status, Task, Word

S = Status
ENDED = frozenset({S.DONE, S.CANCELLED})
LONGEST = 20_000  # characters of a Context that an agent at work is told
MOST_QUESTIONS = 3
LONGEST_QUESTION = 2000


def said(seen: Evidence, text: str, *, at_once: bool, resumes: bool) -> Decision | Declined:
    """The word waits for the agent's next turn. At once: the session ends and goes on with it.

    `resumes` says whether the agent's program can take its conversation up again.
    """
    task, word = seen.task, Word(seen.task.rev + 1, text.strip(), seen.now)
    why_not = _not_said(task, word) or (_not_at_once(task, resumes=resumes) if at_once else None)
    if why_not:
        return why_not
    queued = replace(task, words=(*task.words, word))
    event = WordSaid(word.text, at_once=at_once)
    if not at_once:
        return also(stay(seen, queued), event)
    queued = replace(queued, generation=word.number)
    again = SpawnAgent(Role.WORKER, word.number)
    return also(stay(seen, queued, EndSessions(task.rev, Role.WORKER), again), event)


def word_changed(seen: Evidence, place: int, text: str) -> Decision | Declined:
    """Another text for the word at this place of the queue, from 1; an empty one takes it out."""
    task = seen.task
    if not 1 <= place <= len(task.words):
        return Declined(f"no word {place} waits for its agent", f"lockgate say {task.id}")
    before = task.words[place - 1]
    new = (replace(before, text=text.strip()),) if text.strip() else ()
    queue = (*task.words[: place - 1], *new, *task.words[place:])
    changed = WordChanged(before.text, text.strip())
    return also(stay(seen, replace(task, words=queue)), changed)


def edited(seen: Evidence, goal: str, before: str, context: str) -> Decision | Declined:
    """Another goal or another Context. An agent that has begun is told both as a human's word."""
    task = seen.task
    if task.status in ENDED:
        fix = "make another task for what is left to do"
        return Declined(f"it is {task.status}, and no agent works on it any more", fix)
    events: tuple[Event, ...] = ()
    if goal != task.goal:
        events = (SummaryChanged(goal), GoalChanged(goal))
    if context != before:
        events = (*events, ContextChanged(context))
    if not events:
        return Declined("neither its goal nor its Context is different", "change one of them")
    changed = replace(task, goal=goal, summary=goal if goal != task.goal else task.summary)
    if task.pinned:
        news = Word(task.rev + 1, _news(goal, context), seen.now)
        changed = replace(changed, words=(*task.words, news))
    return also(stay(seen, changed), *events)


def _news(goal: str, context: str) -> str:
    cut = context if len(context) <= LONGEST else f"{context[:LONGEST]}…"
    return f"The task was changed. Its goal is now: {goal}\nIts Context is now:\n{cut or '(none)'}"


def heard(seen: Evidence, upto: int) -> Decision | Declined:
    """The agent of this session hears the words up to this number; no other hears them again."""
    unheard_of = unheard(seen)
    if unheard_of:
        return Declined(unheard_of.why, unheard_of.fix)
    if not waiting_words(seen.task):
        return Declined("no message waits for its agent", f"lockgate say {seen.task.id}")
    session = seen.session.id if seen.session else ""
    task, told = after_hearing(seen.task, upto)
    return also(stay(seen, task), WordsHeard(session, told))


def after_hearing(task: Task, upto: int) -> tuple[Task, tuple[str, ...]]:
    """The task with the words that are left, and the texts that were heard."""
    told = tuple(it.text for it in task.words if it.number <= upto)
    left = tuple(it for it in task.words if it.number > upto)
    return replace(task, words=left), told


def waiting_words(task: Task) -> tuple[Word, ...]:
    """What an agent that works hears at its next turn; elsewhere the words wait for its return."""
    return task.words if task.status is S.WORKING else ()


def _not_said(task: Task, word: Word) -> Declined | None:
    if not word.text:
        return Declined("it is empty", f"lockgate say {task.id} TEXT")
    if task.status in ENDED:
        fix = "make another task for what is left to do"
        return Declined(f"it is {task.status}, and no agent works on it any more", fix)
    if task.taken_over:
        fix = f"say it to the agent yourself: lockgate task attach {task.id}"
        return Declined("you have taken it over, so no agent works on it", fix)
    return None


def _not_at_once(task: Task, *, resumes: bool) -> Declined | None:
    wait = f"leave --now out, and it waits for the next turn: lockgate say {task.id} TEXT"
    if task.status is not S.WORKING or task.dead:
        return Declined("no agent works on it at this moment", wait)
    if not resumes:
        why = f"agent {task.agent} cannot take its conversation up again once it is interrupted"
        return Declined(why, wait)
    return None


def asked_text(questions: Sequence[str]) -> str | Declined:
    """A line each: a heading in one of them must not begin a section."""
    lines = [" ".join(it.split()) for it in questions]
    if not 1 <= len(lines) <= MOST_QUESTIONS or not all(lines):
        why = f"{len(lines)} questions were asked, or one is empty"
        return Declined(why, f"ask 1 to {MOST_QUESTIONS} questions, each with the choices you see")
    if any(len(it) > LONGEST_QUESTION for it in lines):
        why = f"a question has more than {LONGEST_QUESTION} characters"
        return Declined(why, "say what must be decided, and the choices that you see")
    return "\n".join(f"{number}. {it}" for number, it in enumerate(lines, 1))
