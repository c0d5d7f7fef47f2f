"""What people and a working agent say to each other, with real processes and a scripted agent."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Cause, Status
from tests.e2e.orchestra import COMPLETE, CONFIG, REVIEWER, Orchestra, hands_off, worker, writes

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
    assert it.lockgate("answer", id).stdout == f"{id} asks nothing now: it is reviewing\n"
    assert {"question.asked", "question.answered"} <= set(it.types(id))


def test_a_login_shell_of_an_agent_finds_the_lockgate_command(make) -> None:
    it = make(worker("{ shell = \"bash -lc 'lockgate task update --status clarification'\" }"))
    id = it.create("work")
    it.up()

    it.until_status(id, S.CLARIFICATION)
