"""Every key on every state of a task: it works, or says why not in the service's words."""

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.core.hosts import Host
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import Status
from lockgate.faces.tui.keys import ACTIONS, LIST
from lockgate.faces.tui.rows import fits
from lockgate.faces.tui.screens.base import Face
from lockgate.faces.tui.screens.dialogs import Choose, Confirm, Prompt, Read, Write
from lockgate.faces.tui.screens.output import OutputFace
from lockgate.faces.tui.screens.review import ReviewFace
from tests.faces.tui.conftest import SUMMARIES, Home
from tests.faces.tui.driving import Driven

OFTEN = {"approve", "land", "answer", "stuck", "working", "done"}  # the others in `make soak`
KINDS = pytest.mark.parametrize(
    "kind",
    [pytest.param(it, marks=() if it in OFTEN else pytest.mark.slow) for it in SUMMARIES],
)
# What stands on the screen after Enter.
OPENS = {
    "approve": ReviewFace,
    "land": ReviewFace,
    "answer": Write,
    "twice": Write,
    "limit": Write,
    "stuck": Write,
    "paused": Write,
    "done": Read,
    "cancelled": Read,
}
# What Enter asks for at once, and the board that only looks refuses.
DOES = ("dead", "pending")
SKIPPED = {"editor", "quit", "filter"}  # leave the board, or change what is on it


async def back(board: Driven) -> None:
    """Out of whatever is open."""
    while len(board.app.screen_stack) > 1:
        await board.pilot.press("escape")
        await board.pilot.pause()


async def settles(board: Driven, before: str) -> None:
    """Until a box is open, or something new is said."""
    await board.until(
        lambda: len(board.app.screen_stack) > 1 or board.notice != before, "an answer to the key"
    )


@KINDS
@pytest.mark.req("R111", "R136")
def test_enter_opens_what_the_task_needs(seeded: Home, kind: str):
    async def story(board: Driven) -> None:
        await board.press("f", "f", "f") if kind in {"done", "cancelled"} else None
        await board.selects(kind)
        await board.press("enter")
        if kind in OPENS:
            await board.until(lambda: isinstance(board.app.screen, OPENS[kind]), kind)
        elif kind in DOES:
            await board.until(lambda: "this board only looks" in board.notice, kind)
        else:
            await board.until(lambda: isinstance(board.app.screen, OutputFace), kind)

    seeded.drive(story, read_only=True)


def test_the_output_of_an_agent_on_another_host_names_that_host(own: Home):
    app = own.shell.app()
    SqlHosts(app.store.database).put(Host(name="h2", boot="b2", ssh="lockgate@h2.test"))
    [session] = [it for it in app.agents.at_work() if it.task == own.ids["working"]]
    task = app.store.load(session.task)
    moved = replace(task, host="h2", rev=task.rev + 1)
    app.store.commit(Decision(moved, session=replace(session, host="h2")))
    app.close()

    async def story(board: Driven) -> None:
        await board.selects("working")
        await board.press("enter")
        await board.sees("are on host h2", "ssh -t lockgate@h2.test")

    own.drive(story, read_only=True)


@KINDS
def test_every_key_works_or_says_why_not(seeded: Home, kind: str):
    async def story(board: Driven) -> None:
        board.app.desk.state.filter = "all"
        board.app.reload()
        row = await board.selects(kind)
        for action in (it for it in ACTIONS if it.where == LIST and it.name not in SKIPPED):
            assert isinstance(board.app.screen, Face)
            board.app.screen.say("", "dim")
            await board.press(action.keys[0])
            if action.name in {"mark", "next", "previous", "zoom"}:
                await board.press(action.keys[0])
                continue
            await settles(board, "")
            opened = len(board.app.screen_stack) > 1
            assert opened or len(board.notice) > 5, action.name
            if not fits(action.name, row):
                assert not opened, action.name
                assert "not now" in board.notice, (action.name, board.notice)
            await back(board)
            await board.selects(kind)

    seeded.drive(story, read_only=True)


def test_the_footer_has_only_keys_that_can_work(seeded: Home):
    asked = {"approve", "reject", "cancel", "delete", "queue", "takeover", "say"}

    async def story(board: Driven) -> None:
        board.app.desk.state.filter = "all"
        board.app.reload()
        for kind in SUMMARIES:
            row = await board.selects(kind)
            screen = board.app.screen
            assert isinstance(screen, Face)
            offered = {label for _, label in screen.offers()}
            for action in (it for it in ACTIONS if it.name in asked):
                assert (action.label in offered) == fits(action.name, row), (kind, action.name)

    seeded.drive(story, size=(200, 60))


def test_an_unknown_key_says_where_the_keys_are(seeded: Home):
    async def story(board: Driven) -> None:
        await board.press("%")
        await board.sees("% does nothing here; ? lists the keys")

    seeded.drive(story)


# --- deeds --------------------------------------------------------------------------------------


def status(own: Home, kind: str) -> Status:
    return own.shell.status(own.ids[kind])


def test_a_task_is_started_by_enter(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("pending")
        await board.press("enter")
        await board.sees("is working")

    own.drive(story)

    assert status(own, "pending") is Status.WORKING


@pytest.mark.req("R111")
def test_a_crashed_agent_has_its_mark_and_enter_starts_it_again(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("dead")
        line = next(it for it in board.lines if own.ids["dead"] in it)
        assert "✗" in line
        await board.press("enter")
        await board.sees("a new agent starts in the same workspace")

    assert own.shell.facts(own.ids["dead"])["crash_count"] == 1
    own.drive(story)
    assert "SpawnAgent" in str(own.shell.facts(own.ids["dead"])["pending"])


@pytest.mark.req("R112")
def test_a_second_crash_is_told_as_stuck(own: Home):
    async def story(board: Driven) -> None:
        row = await board.selects("twice")
        assert row.need is not None
        await board.sees("stuck", "its agents stopped 2 times")

    own.drive(story)


@pytest.mark.req("R136")
def test_a_task_at_its_limit_is_stuck_and_goes_on_with_a_directive(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("limit")
        await board.sees("its gates failed too often")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.write("use decimal")
        await board.press("ctrl+s")
        await board.sees("is working")

    own.drive(story)

    assert status(own, "limit") is Status.WORKING
    assert own.shell.facts(own.ids["limit"])["directive"] == "use decimal"


def test_a_paused_task_is_resumed_with_a_directive(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("paused")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.press("ctrl+s")
        await board.until(lambda: status(own, "paused") is not Status.PAUSED_FOR_INTERVENTION)

    own.drive(story)


def test_a_question_is_answered(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("answer")
        await board.press("enter")
        await board.sees("comma or semicolon?")
        await board.write("comma")
        await board.press("ctrl+s")
        await board.sees("is working")

    own.drive(story)

    assert status(own, "answer") is Status.WORKING


def test_what_was_written_is_left_by_escape(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("answer")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.write("comma")
        await board.press("escape")
        await board.until(lambda: isinstance(board.app.screen, Face), "the board")

    own.drive(story)

    assert status(own, "answer") is Status.CLARIFICATION


def test_cancel_and_delete_ask_first(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("stuck")
        for key, sure in (("n", False), ("y", True)):
            await board.press("x")
            await board.until(lambda: isinstance(board.app.screen, Confirm), "the question")
            await board.press(key)
            await board.until(lambda: isinstance(board.app.screen, Face), "the board")
            if not sure:
                assert status(own, "stuck") is Status.STUCK
        await board.until(lambda: status(own, "stuck") is Status.CANCELLED, "cancelled")
        await board.press("f", "f", "f")
        await board.selects("done")
        await board.press("d")
        await board.until(lambda: isinstance(board.app.screen, Confirm), "the question")
        await board.press("y")
        await board.sees("is deleted")

    own.drive(story)

    assert own.shell.run("task", "show", own.ids["done"]).code == 1


def test_marked_tasks_are_cancelled_together_after_one_list(own: Home):
    async def story(board: Driven) -> None:
        for kind in ("stuck", "twice"):
            await board.selects(kind)
            await board.press("space")
        await board.press("x")
        await board.sees("Cancel 2 tasks?", own.ids["stuck"], own.ids["twice"])
        await board.press("y")
        await board.sees("2 done")

    own.drive(story)

    assert {status(own, it) for it in ("stuck", "twice")} == {Status.CANCELLED}


def test_several_changes_are_approved_after_a_list_with_their_patches(own: Home):
    patches = [own.shell.facts(own.ids[it])["patch"][:12] for it in ("approve", "land")]

    async def story(board: Driven) -> None:
        for kind in ("approve", "land"):
            await board.selects(kind)
            await board.press("space")
        await board.press("a")
        await board.sees("Say yes to these 2 changes?", *patches)
        await board.press("y")
        await board.sees("2 done")

    own.drive(story, size=(140, 40))

    assert status(own, "approve") is Status.REVIEWING
    assert own.shell.facts(own.ids["land"])["to_land"] is True


def test_the_queue_menu_holds_a_change_and_asks_first(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("land")
        await board.press("Q")
        await board.until(lambda: isinstance(board.app.screen, Choose), "the menu")
        await board.press("enter")
        await board.until(lambda: isinstance(board.app.screen, Write), "the reason")
        await board.write("after the release")
        await board.press("ctrl+s")
        await board.until(lambda: isinstance(board.app.screen, Confirm), "the question")
        await board.press("y")
        await board.until(lambda: own.shell.facts(own.ids["land"])["held"], "held")

    own.drive(story)

    assert own.shell.facts(own.ids["land"])["held"] == "after the release"


def test_a_word_is_said_to_a_working_agent(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("working")
        await board.press("i")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.write("use snake case")
        await board.press("ctrl+s")
        await board.sees("message 1 for the agent")

    own.drive(story, size=(140, 40))

    assert own.shell.facts(own.ids["working"])["words"][0]["text"] == "use snake case"


def test_a_task_is_created_from_its_goal_alone(own: Home):
    async def story(board: Driven) -> None:
        await board.press("c")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.write("Sort the menu")
        await board.press("ctrl+s")
        await board.sees("is created", "sort-the-menu")

    own.drive(story)

    assert "Sort the menu" in own.shell.did("task", "list")


# --- finding one's way --------------------------------------------------------------------------


def test_the_filter_goes_round_and_escape_leads_back(seeded: Home):
    async def story(board: Driven) -> None:
        for name, there, gone in (
            ("needs you", "approve-it", "working-it"),
            ("ended", "done-it", "approve-it"),
            ("all", "cancelled-it", "nothing here"),
        ):
            await board.press("f")
            await board.sees(f"[{name}]", there)
            await board.no_longer(gone)
        await board.press("escape")
        await board.sees("[active]")

    seeded.drive(story, size=(80, 40))


def test_a_search_shows_only_what_has_the_words(seeded: Home):
    async def story(board: Driven) -> None:
        await board.press("/")
        await board.until(lambda: isinstance(board.app.screen, Prompt), "the box")
        await board.write("accents")
        await board.press("enter")
        await board.sees("[active /accents]", "paused-it")
        await board.no_longer("working-it")

    seeded.drive(story)


def test_n_goes_from_need_to_need_and_around(seeded: Home):
    async def story(board: Driven) -> None:
        seen = []
        for _ in range(9):
            seen.append(board.app.desk.state.selected)
            await board.press("n")
        assert len(set(seen)) == 8
        assert seen[0] == seen[8]
        await board.press("N")
        assert board.app.desk.state.selected == seen[0]

    seeded.drive(story)


def test_the_palette_has_every_action_and_every_command(seeded: Home):
    async def story(board: Driven) -> None:
        await board.selects("stuck")
        await board.press(":")
        await board.until(lambda: isinstance(board.app.screen, Choose), "the palette")
        await board.sees("cancel (x)")
        await board.write("lockgate st")
        await board.sees("lockgate status")
        await board.press("escape")
        await board.press(":")
        await board.write("why (w)")
        await board.press("enter")
        await board.sees(f"Why {seeded.ids['stuck']}")

    seeded.drive(story)


def test_the_page_of_keys_lists_them_all(seeded: Home):
    async def story(board: Driven) -> None:
        await board.press("?")
        await board.sees("Enter", "hand it back", "do what the task needs")
        await board.press("G")
        await board.sees("Ctrl-c")

    seeded.drive(story)


def test_task_md_is_shown(seeded: Home):
    async def story(board: Driven) -> None:
        await board.selects("answer")
        await board.press("v")
        await board.sees("TASK.md of", "Questions")

    seeded.drive(story)


def test_a_board_that_only_looks_changes_nothing(seeded: Home):
    before = seeded.shell.rows()

    async def story(board: Driven) -> None:
        await board.selects("stuck")
        await board.press("x")
        await board.press("y")
        await board.sees("this board only looks")

    seeded.drive(story, read_only=True)

    assert seeded.shell.rows() == before


def test_a_board_that_only_looks_dims_no_need_and_keeps_no_comment(own: Home):
    """It once did: then the head said that nothing needs you, above a list of dimmed needs."""

    async def story(board: Driven) -> None:
        await board.selects("stuck")
        await board.press("s")
        await board.sees("this board only looks", "needs you 8")
        await board.selects("approve")
        await board.press("a")
        await board.until(lambda: isinstance(board.app.screen, ReviewFace), "the review")
        await board.press("]", "j", "j", "c")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.write("why?")
        await board.press("ctrl+s")
        await board.sees("this board only looks", "no comments")

    own.drive(story, read_only=True)

    app = own.app()
    assert not any(it.dimmed for it in app.boards.inbox().needs)
    assert not app.desk.drafts(own.ids["approve"], app.caller)
    app.close()


def test_needs_that_are_dimmed_are_told_as_such(own: Home):
    async def story(board: Driven) -> None:
        for kind in ("stuck", "paused"):
            await board.selects(kind)
            await board.press("s")
            await board.sees("1 need dimmed for an hour")
        await board.sees("needs you 6", "2 dimmed")

    own.drive(story, size=(100, 40))


def test_keys_that_are_typed_fast_are_about_the_row_that_they_lead_to(seeded: Home):
    async def story(board: Driven) -> None:
        await board.sees("NEEDS YOU")
        for key in ("j", "j", "w"):
            board.app.simulate_key(key)
        await board.sees(f"Why {seeded.ids['answer']}")

    seeded.drive(story)
