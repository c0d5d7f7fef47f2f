"""What is kept of an output: both its ends, whatever its length."""

KEPT = 1 << 19  # bytes of each end of an output
READ = 1 << 16


class Ends:
    """The first and the last bytes of a stream."""

    def __init__(self) -> None:
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        room = KEPT - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        if len(self._tail) > 2 * KEPT:
            self._lost += len(self._tail) - KEPT
            del self._tail[:-KEPT]

    def whole(self) -> bytes:
        return bytes(self._head + self._tail)

    def text(self) -> str:
        left_out = f"\n… {self._lost} bytes left out …\n" if self._lost else ""
        return _text(bytes(self._head)) + left_out + _text(bytes(self._tail))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="surrogateescape")
