"""Which wrappers of its gates a change edits, and the gate's run with base's version of them."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.differential.plan import Mixed
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.core.model.results import Passed, SingleGateResult
from lockgate.core.wrappers.edits import Edit, agreed, edits, laid
from lockgate.core.wrappers.shell import USUAL_FILES
from lockgate.ports import GateRun, GateRuns, Workspaces
from lockgate.ports.differential import Blend, Trees
from lockgate.services.gates.command import Patience, judge_command
from lockgate.services.gates.runner import Evaluation


class Sides(Struct):
    """Both sides of a change as files, listed when the first is read: many commands name none.

    A text is read once; what is no text counts by its id.
    """

    trees: Trees
    it: Evaluation
    likely: frozenset[str] = frozenset()  # paths that are read at once, with the first
    _fork: str = ""
    _listed: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    _texts: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def fork(self) -> str:
        if not self._fork:
            self._fork = self.trees.fork(self.it.candidate)
        return self._fork

    def base(self, path: str) -> str | None:
        return self._read(self.fork, path)

    def change(self, path: str) -> str | None:
        return self._read(self.it.candidate.commit, path)

    def files_in(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """These files of the change, and those in the directories among them."""
        folders = tuple(it for it in paths if it.endswith("/"))
        here = self._files(self.it.candidate.commit)
        return tuple(it for it in here if it in paths or it.startswith(folders))

    def _read(self, commit: str, path: str) -> str | None:
        listed = self._files(commit)
        if path.endswith("/"):
            return path if any(it.startswith(path) for it in listed) else None
        blob = listed.get(path)
        if blob is not None and blob not in self._texts:
            self._take((blob,))
        return None if blob is None else self._texts[blob]

    def _files(self, commit: str) -> Mapping[str, str]:
        """Path to blob."""
        if not self._listed:
            both = (self.fork, self.it.candidate.commit)
            self._listed = {it: self.trees.blobs(self.it.project, it) for it in both}
            found = (side.get(it) for side in self._listed.values() for it in self.likely)
            self._take(tuple(sorted({it for it in found if it})))
        return self._listed[commit]

    def _take(self, blobs: tuple[str, ...]) -> None:
        if blobs:
            texts = self.trees.texts(self.it.project, blobs)
            self._texts |= {it: texts.get(it, it) for it in blobs}


class WrappedCommands(Struct, frozen=True, kw_only=True):
    home: Path
    workspaces: Workspaces
    trees: Trees
    gates: GateRuns

    def edited(self, it: Evaluation) -> Mapping[str, tuple[Edit, ...]]:
        """By gate, of those that run a command; none where the change has no files."""
        if not it.files or not it.candidate.commit:
            return {}
        listed = [g for g in it.settings.gates if isinstance(g, CommandGate | DifferentialGate)]
        words = (word.removeprefix("./") for gate in listed for word in gate.command.split())
        sides = Sides(self.trees, it, frozenset((*USUAL_FILES, *words)))
        commands = {gate.command for gate in listed}
        by_command = {it: edits(it, sides.base, sides.change) for it in commands}
        return {gate.name: by_command[gate.command] for gate in listed}

    def compared(
        self,
        it: Evaluation,
        gate: CommandGate,
        found: tuple[Edit, ...],
        own: Passed,
        patience: Patience,
    ) -> SingleGateResult:
        place = it.place_in(self.home, f"{gate.name}-of-base")
        named = replace(gate, name=f"{gate.name}, with base's wrapper")
        try:
            run = self._laid(it, found, place)
            limits = it.settings.limits
            result = judge_command(self.gates, named, run, limits, patience)
        finally:
            self.workspaces.discard(place)
        return agreed(own, result, found)

    def _laid(self, it: Evaluation, found: tuple[Edit, ...], place: Path) -> GateRun:
        """The change's tree with base's wrappers in it, set up like the change's own."""
        sides, candidate = Sides(self.trees, it), it.candidate
        put = laid(found, sides.base, sides.change)
        blend = Blend(
            commit=candidate.commit,
            other=sides.fork,
            mixed=Mixed(put.take, sides.files_in(put.drop)),
            planted=put.written,
        )
        self.workspaces.discard(place)
        self.trees.blend(candidate, blend, place)
        self.workspaces.set_up(candidate, it.settings, place, own=True)
        return GateRun(
            checkout=place,
            base=self.workspaces.base(it.project),
            commit=candidate.commit,
            tree="",  # nobody's
            config_hash=candidate.config_hash,
            sandbox=it.settings.sandbox,
            services=it.settings.services,
            data=self.workspaces.service_data(candidate, it.settings, candidate.commit),
        )
