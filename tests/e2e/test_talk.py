"""What people and a working agent say to each other, with real processes and a scripted agent."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Cause, Status, TaskId
from tests.e2e.orchestra import COMPLETE, CONFIG, REVIEWER, Orchestra, hands_off, worker, writes

pytestmark = pytest.mark.measured

S = Status
GOOD = (writes("good"), hands_off("good"), COMPLETE)
ASKED = "nothing was handed in"
Make = Callable[..., Orchestra]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Orchestra] = []

    def orchestra(script: str, config: str = CONFIG) -> Orchestra:
        made.append(Orchestra(tmp_path, config, {"work": script}))
        return made[-1]

    yield orchestra
    for it in made:
        it.close()


# --- an agent that stops without handing in -------------------------------------------------------


def test_an_agent_that_stops_politely_is_asked_and_hands_in(make) -> None:
    it = make(worker(*GOOD, when=ASKED) + worker('{ say = "All done, bye!" }') + REVIEWER)
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.REVIEWING)

    assert (task.crash_count, task.failed_attempts, task.last_words) == (0, 0, "")
    assert it.types(id).count("agent.asked") == 1
    first, second, *_ = it.app.store.sessions(id)
    assert (first.native, first.asked) == (second.native, False)
    assert second.asked
    peeked = it.lockgate("task", "peek", id, "--session", first.id)
    assert peeked.stdout == "All done, bye!\n"
    short = it.lockgate("task", "peek", id, "--session", first.id.rpartition(".")[2])
    assert short.stdout == peeked.stdout
    unknown = it.lockgate("task", "peek", id, "--session", "77")
    assert unknown.returncode == 1
    assert first.id in unknown.stderr


def test_an_agent_that_stops_again_is_told_of_in_plain_words_and_the_next_one_reads_its_last(
    make,
) -> None:
    talks = '{ say = "I cannot find the file." }'
    it = make(worker(talks))
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.STUCK)

    assert task.cause is Cause.CRASH_THRESHOLD
    assert task.last_words == "I cannot find the file."
    why = it.lockgate("task", "why", id).stdout
    assert "stopped 2 times without handing in" in why
    assert "It said: I cannot find the file." in why
    assert "crash" not in why
    it.until(lambda: it.settled(id))
    assert it.starts(id) == 4  # two tries, each asked once


@pytest.mark.slow
def test_an_old_handoff_above_a_new_one_is_put_away(make) -> None:
    bad = (writes("bad"), hands_off("try 1"), COMPLETE)
    appends = "{ shell = \"printf '\\\\n## Handoff\\\\n\\\\nDONE: again\\\\n' >> TASK.md\" }"
    it = make(worker(*bad) + worker(writes("good"), appends, COMPLETE) + REVIEWER)
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.REVIEWING)

    assert task.failed_attempts == 1
    body = it.app.store.body(id) or ""
    assert body.count("## Handoff") == 1
    assert "DONE: again" in body
    assert "try 1" not in body


# --- an agent that asks ---------------------------------------------------------------------------


def test_what_an_agent_asks_is_shown_everywhere_and_its_answer_reaches_it(make) -> None:
    questions = '{ section = "Questions", text = "Which word:\\ngood or bad?" }'
    asks = (questions, '{ signal = "update clarification" }')
    it = make(worker(*GOOD, when="the good one") + worker(*asks) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until_status(id, S.CLARIFICATION)
    it.until(lambda: it.settled(id))

    for look in (("task", "list"), ("status",), ("task", "why", id), ("task", "show", id)):
        assert "Which word: good or bad?" in it.lockgate(*look).stdout, look
    asked = it.lockgate("answer", id)
    assert asked.returncode == 0
    assert "  Which word:\n  good or bad?\n" in asked.stdout
    assert f"lockgate answer {id} -m TEXT" in asked.stdout
    assert it.task(id).status is S.CLARIFICATION
    done = it.lockgate("answer", id, "-m", "the good one")

    assert done.returncode == 0, done.stderr
    task = it.until_status(id, S.REVIEWING)
    assert task.question == ""
    assert it.lockgate("answer", id).stdout == f"{id} asks nothing now: it is ready to land\n"
    assert {"question.asked", "question.answered"} <= set(it.types(id))


def test_a_login_shell_of_an_agent_finds_the_lockgate_command(make) -> None:
    it = make(worker("{ shell = \"bash -lc 'lockgate task update --status clarification'\" }"))
    id = it.create("work")
    it.up()

    it.until_status(id, S.CLARIFICATION)


# --- a word to a working agent --------------------------------------------------------------------

WAITS = '{ shell = "while [ ! -e ~/go ]; do sleep 0.1; done" }'


def go(it: Orchestra, id: TaskId) -> None:
    (it.home / "homes" / id / "go").touch()


def at_work(it: Orchestra) -> TaskId:
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)
    return id


def test_a_word_is_heard_when_the_agent_hands_in_and_the_work_is_judged_after_that(make) -> None:
    it = make(worker(WAITS, *GOOD, COMPLETE) + REVIEWER)
    id = at_work(it)

    said = it.lockgate("say", id, "Use the good word.")
    shown = it.lockgate("say", id)
    go(it, id)

    assert said.returncode == 0, said.stderr
    assert "1. Use the good word." in shown.stdout
    it.until_status(id, S.REVIEWING)
    worker_session = it.app.store.sessions(id)[0].id
    peeked = it.lockgate("task", "peek", id, "--session", worker_session).stdout
    assert "A human who follows your work says:\nUse the good word.\n" in peeked
    assert it.types(id).count("words.heard") == 1
    assert it.task(id).words == ()
    assert "no message waits" in it.lockgate("say", id).stdout


@pytest.mark.slow
def test_a_word_to_an_agent_that_only_stops_is_heard_in_the_same_conversation(make) -> None:
    it = make(worker(*GOOD, when="Use the good word.") + worker(WAITS, hands_off("bad")) + REVIEWER)
    id = at_work(it)

    it.lockgate("say", id, "Use the good word.")
    go(it, id)

    task = it.until_status(id, S.REVIEWING)
    assert (task.crash_count, task.failed_attempts) == (0, 0)
    first, second, *_ = it.app.store.sessions(id)
    assert first.native == second.native


def test_a_word_that_cannot_wait_interrupts_the_agent_and_counts_nothing(make) -> None:
    it = make(worker(*GOOD, when="Use the good word.") + worker("{ hang = true }") + REVIEWER)
    id = at_work(it)

    said = it.lockgate("say", id, "--now", "Use the good word.")

    assert said.returncode == 0, said.stderr
    assert "is interrupted" in said.stdout
    task = it.until_status(id, S.REVIEWING)
    assert (task.crash_count, task.failed_attempts) == (0, 0)
    assert it.starts(id) == 2


@pytest.mark.slow
def test_an_agent_at_work_is_told_what_a_human_changed_of_its_task(make, tmp_path) -> None:
    it = make(worker(*GOOD, when="Say it well") + worker(WAITS, hands_off("bad")) + REVIEWER)
    id = at_work(it)
    (tmp_path / "new.md").write_text("Say it well\n\nUse the good word.\n", encoding="utf-8")

    edited = it.lockgate("task", "edit", id, "--file", str(tmp_path / "new.md"))
    go(it, id)

    assert edited.returncode == 0, edited.stderr
    task = it.until_status(id, S.REVIEWING)
    assert (task.goal, task.summary) == ("Say it well", "Say it well")
    assert "## Context\n\nUse the good word.\n" in (it.app.store.body(id) or "")
