"""What differs between two databases, on one page."""

from collections.abc import Callable, Sequence
from typing import Protocol

from lockgate.adapters.store.fields import Row
from lockgate.adapters.store.rows import Values


class Answer(Protocol):
    """What a statement gave back; asking for it may be what sends the statement."""

    def fetchone(self) -> Row | None: ...


class Run(Protocol):
    def __call__(self, statement: str, values: Values, /) -> Answer: ...


Work = Callable[[Run], None]


class Database(Protocol):
    """One dialect. It turns its library's errors into ours, and threads may share it."""

    def read(self, statement: str, values: Values) -> Sequence[Row]: ...
    def write(self, work: Work) -> None:
        """Do it in one transaction that is on disk on return; none of it is there on an error."""
        ...

    def write_lightly(self, work: Work) -> None:
        """As write, but a power cut may undo it."""
        ...

    def close(self) -> None: ...
