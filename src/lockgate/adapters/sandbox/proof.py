"""Shows that a box is one: its inside says a word that only we know, and which namespaces it has.

The word goes in where the command later reads, and the answer comes out where it later writes;
the command is started only then, and by then the word was read.
"""

import os

LINE = 4096  # bytes, more than an answer has
UNHEARD = 1 << 16  # bytes of what is said before the answer
BY_KERNEL = ("mnt", "pid", "ipc", "uts", "net")  # those that we also ask the kernel for

# Only built-in commands: a program takes a millisecond. Before Linux 5.14 no inode is told there.
_ASKING = """read -r word <&IN || exit 125
ids=
for name in mnt pid ipc uts net user; do
  exec 3<"/proc/self/ns/$name"
  while read -r key value; do
    [ "$key" != ino: ] || ids="$ids $name:$value"
  done </proc/self/fdinfo/3
done
exec 3<&-
[ -n "$ids" ] || ids=" $(cd /proc/self/ns && readlink * | tr -d '[]' | tr '\\n' ' ')"
echo "$word$ids" >&OUT
read -r go <&IN || exit 125
unset word ids name key value go
"""
STREAMS = (0, 2)  # the command's own: what it reads, and where it complains
PIPES = (8, 9)  # for a session, whose streams may be a terminal


def asked(argv: tuple[str, ...], through: tuple[int, int]) -> tuple[str, ...]:
    """The command behind the question, which is asked and answered by these descriptors."""
    into, out = through
    script = _ASKING.replace("IN", str(into)).replace("OUT", str(out))
    closing = "" if through == STREAMS else f" {into}<&- {out}>&-"
    return ("/bin/sh", "-c", f'{script}exec "$@"{closing}\n', "enclosed", *argv)


class Proof:
    """One question and its answer. Nothing that a box ends with counts before it holds."""

    def __init__(self, separate: tuple[str, ...]) -> None:
        """`separate` are the namespaces that the box must not share with us."""
        self.holds, self.fault = False, "nothing inside answered"
        self.word = os.urandom(16).hex().encode() + b"\n"
        self._separate, self._heard = separate, b""
        self._over = False

    def hear(self, chunk: bytes, first: int) -> bytes:
        """What of it is not the answer; `first` is the pid that is said to be the box's first."""
        if self._over:
            return chunk
        self._heard += chunk
        before, found, rest = self._heard.partition(self.word[:-1])
        line, ended, behind = rest.partition(b"\n")
        if not found or not ended:
            return self._given_up() if len(self._heard) > UNHEARD else b""
        self._over, self._heard = True, b""
        self.fault = _fault_of(line[:LINE], self._separate, first)
        self.holds = not self.fault
        return before + behind

    @property
    def answered(self) -> bool:
        return self._over

    def unheard(self) -> bytes:
        """What was said by something that never answered."""
        said, self._heard = self._heard, b""
        return said

    def _given_up(self) -> bytes:
        self._over = True
        return self.unheard()


def _fault_of(line: bytes, separate: tuple[str, ...], first: int) -> str:
    pairs = (word.partition(b":") for word in line.split())
    told = {name.decode("ascii", "replace"): number for name, _, number in pairs}
    for name in separate:
        number = told.get(name, b"")
        if not number.isdigit() or int(number) == namespace_of("self", name):
            return f"what ran has no {name} namespace of its own"
        if name in BY_KERNEL and int(number) != namespace_of(first, name):
            return f"the kernel knows of no such {name} namespace"
    return ""


def namespace_of(pid: int | str, name: str) -> int:
    """0 where the process is gone."""
    try:
        return os.stat(f"/proc/{pid}/ns/{name}").st_ino  # noqa: PTH116 - the runner has no pathlib
    except OSError:
        return 0
