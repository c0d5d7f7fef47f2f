"""What a process keeps from job to job, where each job has a crew of its own."""

from threading import Lock

from msgspec import Struct, field

from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Tree
from lockgate.ports.spans import NoSpans, Spans
from lockgate.services.gates.judge import Killed


class Memory(Struct, frozen=True):
    """One for each process that judges; nothing of it outlives the process."""

    spans: Spans = field(default_factory=NoSpans)
    """Where traces go: one exporter, with one thread."""

    words: dict[str, Lock] = field(default_factory=dict[str, Lock])
    """The locks of gates by their `exclusive` word, so that no two of a word run together."""

    killed: dict[TaskId, Killed] = field(default_factory=dict[TaskId, Killed])
    """The gates of changes whose command was killed: the second time is a finding."""

    killed_trees: dict[Tree, frozenset[str]] = field(default_factory=dict[Tree, frozenset[str]])
    """The same for trees of the train."""
