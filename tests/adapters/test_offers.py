"""Which agents a host of a fleet offers: those with a program and a login, also own ones."""

from pathlib import Path

from lockgate.bootstrap import open_app
from lockgate.bootstrap.offers import agents_of, lacking_for
from lockgate.core.fleet import LaneRow
from lockgate.core.jobs import CarryOut, lane_of
from tests.scenarios.world import REVIEW_ONLY, World

OWN = f"""{REVIEW_ONLY}
[agents.mine]
command = ["my-agent", "{{prompt_file}}"]
"""


def install(place: Path, *names: str) -> None:
    place.mkdir(exist_ok=True)
    for name in names:
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)


def test_a_host_offers_an_agent_once_its_program_and_its_login_are_there(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    world = World.at(tmp_path, OWN)
    job = CarryOut(world.started(), world.project().id)
    row = LaneRow(
        lane=lane_of(job),
        job=job,
        needs="agent:claude+agent:mine+gpu",
        epoch=1,
        token="",
        host="h1",
        asked=1.0,
        since=1.0,
        until=0.0,
        why="",
    )
    assert agents_of(world.app) == ("scripted",)
    assert lacking_for(world.app, row) == ("claude", "mine")

    install(tmp_path / "bin", "claude", "my-agent")
    assert agents_of(world.app) == ("mine", "scripted")  # nobody has logged in claude

    world.app.store.close()
    world.app = open_app({"LOCKGATE_HOME": str(world.home), "ANTHROPIC_API_KEY": "k"})
    assert set(agents_of(world.app)) >= {"claude", "mine", "scripted"}
    assert lacking_for(world.app, row) == ()
