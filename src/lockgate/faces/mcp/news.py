"""What happens in the home, from the orchestrator's feed: for who waits, and who subscribed."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lockgate.faces import feed_client

Item = Mapping[str, Any]  # a line of the feed
Listener = Callable[[frozenset[str]], None]  # is told which resources changed
NO_ROW: Item = {}  # of a task that is gone
SCHEME = "lockgate://"
BOARD, INBOX = f"{SCHEME}board", f"{SCHEME}inbox"
PARTS = ("", "/diff", "/taskmd", "/findings")  # of a task, that an event may change


class News:
    """Follows from when it is first asked until it is closed; then again when asked again."""

    def __init__(self, follow: Callable[[], "Iterable[Item]"] = feed_client.follow) -> None:
        self._follow = follow
        self._changed = threading.Condition()
        self._following: Iterable[Item] | None = None
        self._count = 0  # events that came
        self._listeners: dict[object, Listener] = {}

    def mark(self) -> int:
        """A place in what happens, to wait from."""
        with self._changed:
            if self._following is None:
                self._following = self._follow()
                threading.Thread(target=self._run, args=(self._following,), daemon=True).start()
            return self._count

    def wait(self, mark: int, seconds: float) -> bool:
        """Whether something happened since that mark, within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count > mark, seconds)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Called from another thread; the answer ends it."""
        self.mark()
        key = object()
        with self._changed:
            self._listeners[key] = listener

        def end() -> None:
            with self._changed:
                self._listeners.pop(key, None)

        return end

    def close(self) -> None:
        with self._changed:
            following, self._following = self._following, None
        close = getattr(following, "close", None)
        if close is not None:
            close()

    def _run(self, following: Iterable[Item]) -> None:
        try:
            for item in following:
                self._tell(frozenset(changed(item)))
        except feed_client.FeedRefused:
            pass  # an older orchestrator: nobody is told, and who waits looks at the end
        finally:
            with self._changed:
                if self._following is following:
                    self._following = None

    def _tell(self, uris: frozenset[str]) -> None:
        if not uris:
            return
        with self._changed:
            self._count += 1
            self._changed.notify_all()
            listeners = tuple(self._listeners.values())
        for listener in listeners:
            listener(uris)


def changed(item: Item) -> Iterator[str]:
    """The resources that a line of the feed may have changed; all of them after a gap."""
    if "back" in item or "resync" in item:
        yield from (BOARD, INBOX)
    if "event" not in item:
        return
    yield from (BOARD, INBOX)
    task = item["event"].get("task")
    row: Item = item.get("row") or NO_ROW
    if task:
        yield from (f"{SCHEME}task/{task}{part}" for part in PARTS)
    for name in ("project", "project_name"):
        if row.get(name):
            yield f"{SCHEME}train/{row[name]}"
