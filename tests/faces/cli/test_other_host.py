"""What needs the files of a task that another host of a fleet has names that host."""

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.bootstrap.hosts import start_of
from lockgate.core.hosts import Host
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.errors import Refused
from lockgate.services.task.callers import HUMAN
from tests.faces.shell import HANDOFF, Shell

H2 = Host(name="h2", boot="b2", ssh="lockgate@h2.test", api="https://h2.test")


def worked_on(shell: Shell, host: Host) -> TaskId:
    """Its agent works on that host, as the database says."""
    id = shell.create()
    start_of(shell.home)  # gives the home its id, which is a trace too
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    app = shell.app()
    SqlHosts(app.store.database).put(host)
    task, [session] = app.store.load(id), app.store.sessions(id)
    moved = replace(task, host=host.name, rev=task.rev + 1)
    app.store.commit(Decision(moved, session=replace(session, host=host.name)))
    app.close()
    return id


@pytest.mark.parametrize(
    ("argv", "what", "page"),
    [
        (("handback", "ID", "-m", "by hand"), "task ID was not handed back", ""),
        (("diff", "ID"), "the change of task ID is not shown", "/t/ID/review"),
        (("open", "ID"), "the change of task ID is not shown", "/t/ID/review"),
        (("task", "peek", "ID"), "no output of task ID is shown", "/t/ID/output/ID.1"),
        (("task", "peek", "ID", "--json"), "no output of task ID is shown", "/t/ID/output/ID.1"),
    ],
)
def test_a_command_names_the_host_that_has_the_files(shell, argv, what, page) -> None:
    id = worked_on(shell, H2)
    shell.write(id, HANDOFF)
    before = shell.traces()

    told = shell.run(*(it.replace("ID", id) for it in argv))

    assert told.code == 1
    for it in (what, "the files of task ID are on host h2", f"https://h2.test{page}"):
        assert it.replace("ID", id) in told.err
    assert "ssh -t lockgate@h2.test lockgate" in told.err
    assert shell.traces() == before


def test_nobody_sits_down_at_a_task_on_another_host(shell) -> None:
    id = worked_on(shell, H2)
    (shell.home / "workspaces" / id).mkdir(parents=True)  # left behind
    before = shell.traces()

    opened = shell.run("shell", id, "--", "true")
    app = shell.app()
    with pytest.raises(Refused) as error:
        app.people.take_over(id, HUMAN)
    app.close()

    assert "are on host h2" in opened.why
    assert f"ssh -t lockgate@h2.test lockgate shell {id}" in opened.why
    assert error.value.what == f"task {id} was not taken over"
    assert f"ssh -t lockgate@h2.test lockgate takeover {id}" in error.value.fix
    assert shell.traces() == before


def test_a_clone_that_was_left_behind_here_is_not_handed_back(shell) -> None:
    id = worked_on(shell, H2)
    left = shell.home / "workspaces" / id
    left.mkdir(parents=True)
    (left / "TASK.md").write_text(shell.file(id).read_text() + HANDOFF)

    assert "are on host h2" in shell.run("handback", id).why
    assert "DONE" not in shell.file(id).read_text()


def test_the_host_that_has_the_files_uses_them(shell) -> None:
    shell.did("task", "list")  # makes the home
    id = worked_on(shell, replace(H2, boot=start_of(shell.home)))

    assert "has said nothing yet" in shell.did("task", "peek", id)
    assert shell.did("diff", id) == "\n"
    assert "it is not taken over" in shell.run("handback", id).why
