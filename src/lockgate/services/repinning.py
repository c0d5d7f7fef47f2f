"""`task repin`: the rules of the base branch as it is now, for a task that has others."""

from dataclasses import dataclass

from lockgate.core.lifecycle.records import repinned
from lockgate.core.model.task import Task, TaskId
from lockgate.ports import Configuration
from lockgate.services.callers import Caller, must_be_human
from lockgate.services.coordinator import Coordinator


@dataclass(frozen=True, slots=True)
class Repinning:
    coordinator: Coordinator
    configuration: Configuration

    def repin(self, id: TaskId, caller: Caller) -> Task:
        """BadConfig where the base's configuration cannot be taken: then nothing changes."""
        what = f"task {id} keeps its rules"
        must_be_human(caller, what)
        store = self.coordinator.store
        rules = self.configuration.rules_of(store.project(store.load(id).project))
        return self.coordinator.turn(id, lambda seen: repinned(seen, rules), caller, what)
