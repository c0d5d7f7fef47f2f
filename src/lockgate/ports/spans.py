"""The door to those who draw what took how long: OpenTelemetry, where somebody asked for it."""

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from msgspec import Struct, field

from lockgate.core.model.spans import UNTRACED, Context, Facts, Span


class Open(Struct):
    """A span that goes on; what is noted here is told at its end."""

    at: Context
    facts: dict[str, str | int | float | bool] = field(
        default_factory=dict[str, str | int | float | bool]
    )
    failed: bool = False


class Spans(Protocol):
    @property
    def wanted(self) -> bool:
        """Whether anybody looks; where not, nothing else need be called."""
        ...

    def tell(self, spans: Iterable[Span]) -> None:
        """These have ended. It waits for nobody, and what cannot be told is lost."""
        ...

    def span(self, name: str, parent: Context, facts: Facts) -> AbstractContextManager[Open]:
        """One that lasts as long as what is done inside; untraced in what is untraced."""
        ...

    def close(self) -> None:
        """Send what waits, within a moment."""
        ...


class NoSpans(Struct, frozen=True):
    """Nobody looks."""

    wanted: bool = False

    def tell(self, spans: Iterable[Span]) -> None:
        pass

    @contextmanager
    def span(self, name: str, parent: Context, facts: Facts) -> Generator[Open]:
        del name, parent, facts
        yield Open(UNTRACED)

    def close(self) -> None:
        pass
