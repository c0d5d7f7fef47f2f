"""What a large set-up layer adds to preparing a checkout or a workspace: time, room on disk."""

import os
from pathlib import Path

from msgspec import Struct

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from bench.home import make_home
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.sandbox import trouble
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.task import Pinned, Task, TaskId
from lockgate.ports import Project, candidate_of

FILES, BYTES = 50_000, 20_000  # together 1 GB
ROUNDS = 30
ROOM = 5_000_000  # bytes that a checkout with the layer may take more
CHECKOUT = f"a checkout over a layer of {FILES:,} files"
WORKSPACE = f"a workspace over a layer of {FILES:,} files"
WITHOUT = "without a layer"
SETUP = f"""python3 -c '
import os, pathlib
for n in range({FILES}):
    folder = pathlib.Path(f"node_modules/p{{n // 100}}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{{n}}.js").write_bytes(os.urandom({BYTES}))
'"""


def bench(where: Path) -> list[Measure]:
    say("\nlayers")
    if why := trouble():
        say(f"  not measured: {why}")
        return []
    app, project = make_home(where)
    commit = GitRepository().commit_of(project, "main") or ""
    app.store.close()
    plain = Settings(formula="none", gates=())
    large = Settings(formula="none", gates=(), env=EnvSettings(SETUP, ("package.json",)))
    workspaces = GitWorkspaces(where / "home")
    return [
        *_compared(CHECKOUT, _Checkout(workspaces, project, commit), (large, plain)),
        *_compared(WORKSPACE, _Workspace(workspaces, project, commit), (large, plain)),
    ]


class _Checkout(Struct, frozen=True):
    """What a gate runs in."""

    workspaces: GitWorkspaces
    project: Project
    commit: str

    def prepare(self, id: str, settings: Settings) -> None:
        it = candidate_of(self.project, _task(self.project, id, self.commit), self.commit)
        self.workspaces.checkout(it, self.place(id))
        self.workspaces.set_up(it, settings, self.place(id))

    def place(self, id: str) -> Path:
        return self.workspaces.home / "runs" / id / "1"

    def remove(self, id: str) -> None:
        self.workspaces.discard(self.place(id))


class _Workspace(_Checkout, frozen=True):
    """What an agent works in."""

    def prepare(self, id: str, settings: Settings) -> None:
        task = _task(self.project, id, self.commit)
        place = self.workspaces.prepare(self.project, task)
        self.workspaces.set_up(candidate_of(self.project, task), settings, place)

    def place(self, id: str) -> Path:
        return self.workspaces.place(TaskId(id))


def _task(project: Project, id: str, commit: str) -> Task:
    return Task(
        id=TaskId(id),
        project=project.id,
        summary="measure",
        goal="measure",
        branch=f"bench-{id}",
        agent="scripted",
        created=0.0,
        updated=0.0,
        pinned=Pinned(base_commit=commit, config_hash="bench"),
    )


def _compared(name: str, kind: _Checkout, settings: tuple[Settings, Settings]) -> list[Measure]:
    """The time of preparing one, without that of taking the last one away; and its room on disk."""
    ids = {name: "with", WITHOUT: "without"}
    works = {
        it: _preparing(kind, id, told) for (it, id), told in zip(ids.items(), settings, strict=True)
    }
    works[name]()  # makes the layer
    medians = interleave(works, ROUNDS)
    more = _size(kind.place("with")) - _size(kind.place("without"))
    said = "met" if more < ROOM else "missed"
    say(f"  {name}: {more / 1e6:.3f} MB more on disk: {said} (< 5 MB)")
    theirs = medians[WITHOUT]
    return [Measure(name=name, ours=medians[name], peer=WITHOUT, theirs=theirs, target=AtMost(3))]


def _preparing(kind: _Checkout, id: str, settings: Settings) -> Work:
    def work() -> float:
        kind.remove(id)
        return clocked(lambda: kind.prepare(id, settings))()

    return work


def _size(desk: Path) -> int:
    """Of all files of it, and of what lies beside it for it."""
    places = (desk, *desk.parent.glob(f".*-{desk.name}"))
    inside = (Path(at) / it for top in places for at, _, names in os.walk(top) for it in names)
    beside = (it for it in places if it.is_file())
    return sum(it.lstat().st_blocks * 512 for it in (*inside, *beside))


if __name__ == "__main__":
    main(bench)
