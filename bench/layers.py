"""What a large set-up layer adds to preparing a gate's checkout: time, and room on disk."""

import os
from pathlib import Path

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from bench.home import make_home
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.sandbox import trouble
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.task import Pinned
from lockgate.ports import Candidate

FILES, BYTES = 50_000, 20_000  # together 1 GB
ROUNDS = 30
ROOM = 5_000_000  # bytes that a checkout with the layer may take more
WITH, WITHOUT = f"a checkout over a layer of {FILES:,} files", "without a layer"
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
    rules = Pinned(base_commit=commit, config_hash="bench")
    it = Candidate(project=project, commit=commit, rules=rules, name="bench")
    plain = Settings(formula="none", gates=())
    large = Settings(formula="none", gates=(), env=EnvSettings(SETUP, ("package.json",)))
    workspaces = GitWorkspaces(where / "home")
    works: dict[str, Work] = {
        name: _preparing(workspaces, it, settings, where / "home" / "runs" / "bench" / name[:9])
        for name, settings in ((WITH, large), (WITHOUT, plain))
    }
    works[WITH]()  # makes the layer
    medians = interleave(works, ROUNDS)
    desks = [where / "home" / "runs" / "bench" / name[:9] for name in (WITH, WITHOUT)]
    more = _size(desks[0]) - _size(desks[1])
    say(f"  {more / 1e6:.3f} MB more on disk: {'met' if more < ROOM else 'missed'} (< 5 MB)")
    return [
        Measure(
            name=WITH, ours=medians[WITH], peer=WITHOUT, theirs=medians[WITHOUT], target=AtMost(3)
        )
    ]


def _preparing(workspaces: GitWorkspaces, it: Candidate, settings: Settings, desk: Path) -> Work:
    """The time of the checkout and its set-up, without that of taking the last one away."""

    def prepare() -> None:
        workspaces.checkout(it, desk)
        workspaces.set_up(it, settings, desk)

    def work() -> float:
        workspaces.discard(desk)
        return clocked(prepare)()

    return work


def _size(desk: Path) -> int:
    """Of all files of it, and of what is noted beside it."""
    inside = (Path(at) / it for at, _, names in os.walk(desk) for it in names)
    beside = (it for it in desk.parent.glob(f".*-{desk.name}") if it.is_file())
    return sum(it.lstat().st_blocks * 512 for it in (*inside, *beside))


if __name__ == "__main__":
    main(bench)
