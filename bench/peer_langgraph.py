"""LangGraph's SQLite checkpointer: one `put` of a small checkpoint, settings as it comes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.harness import Work, say

NAME = "LangGraph put"


@contextmanager
def opened(where: Path) -> Iterator[Work]:
    with SqliteSaver.from_conn_string(str(where / "langgraph.db")) as saver:
        saver.setup()
        mode, full = (saver.conn.execute(f"PRAGMA {it}").fetchone()[0] for it in _PRAGMAS)
        packages = ("langgraph", "langgraph-checkpoint-sqlite")
        versions = ", ".join(f"{it} {version(it)}" for it in packages)
        say(f"  {versions}: journal {mode}, synchronous {full}")
        yield _Thread(saver).put


class _Thread:
    """One conversation, each checkpoint the child of the one before."""

    def __init__(self, saver: SqliteSaver) -> None:
        self.saver = saver
        self.last: RunnableConfig = {"configurable": {"thread_id": "task", "checkpoint_ns": ""}}
        self.step = 0

    def put(self) -> float:
        self.step += 1
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"status": "working", "iteration": 1}
        versions: ChannelVersions = {"status": self.step, "iteration": self.step}
        checkpoint["channel_versions"] = versions
        metadata: CheckpointMetadata = {"source": "loop", "step": self.step}
        begin = time.perf_counter()
        self.last = self.saver.put(self.last, checkpoint, metadata, versions)
        return time.perf_counter() - begin


_PRAGMAS = ("journal_mode", "synchronous")
