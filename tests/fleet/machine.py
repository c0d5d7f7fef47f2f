"""The first process of a host: in namespaces of its own it does what the outside asks.

`unshare --net --mount --pid python machine.py DESCRIPTOR FACTS`. It ends with its control socket,
and with it every process of the host.
"""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SIZE = 1 << 20
LOOKS = 0.2  # seconds between two looks for processes that have ended
UP, READ_FLAGS, WRITE_FLAGS = 0x1, 0x8913, 0x8914  # of an interface, as ioctl knows them
BOOT = "/proc/sys/kernel/random/boot_id"


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    pid = os.fork()
    if pid:  # outside of the new process namespace: it ends when all of that has ended
        control.send(json.dumps(pid).encode())
        control.close()
        os.waitpid(pid, 0)
        return
    machine = Machine(control, json.loads(sys.argv[2]))
    try:
        machine.serve()
    finally:
        os._exit(0)


class Machine:
    def __init__(self, control: socket.socket, facts: dict[str, object]) -> None:
        self._control, self._facts = control, facts
        self._worker, self._ended = 0, dict[int, int]()

    def serve(self) -> None:
        while True:
            if select.select([self._control], [], [], LOOKS)[0]:
                asked = self._control.recv(SIZE)
                if not asked:
                    return
                self._answer(*json.loads(asked))
            self._reap()

    def _answer(self, what: str, *more: object) -> None:
        try:
            told = getattr(self, f"on_{what}")(*more)
        except Exception as error:  # noqa: BLE001 - the outside is told, and fails there
            told = {"error": repr(error)}
        if told is not None:
            self._control.send(json.dumps(told).encode())

    # What is asked.

    def on_boot(self, keep: list[str], hide: list[str], ports: list[int], disk: str) -> None:
        own = keep[0]
        _mounts(keep, hide)
        if disk:
            _small_home(Path(own) / "home", disk)
        _mount("-t", "proc", "proc", "/proc")
        (Path(own) / "boot").write_text(str(self._facts["boot"]) + "\n")
        _mount("--bind", f"{own}/boot", BOOT)
        network(up=True)
        doors = [_listening(port) for port in ports]
        socket.send_fds(self._control, [b'"up"'], [it.fileno() for it in doors])
        for it in doors:
            it.close()

    def on_start(self, argv: list[str], env: dict[str, str], cwd: str, log: str) -> int:
        with Path(log).open("ab") as file:
            worker = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        self._worker = worker.pid
        worker.returncode = 0  # reaped here, not by its object
        return self._worker

    def on_signal(self, number: int) -> bool:
        with suppress(ProcessLookupError):
            if self._worker and self._worker not in self._ended:
                os.kill(self._worker, number)
                return True
        return False

    def on_alive(self) -> bool:
        self._reap()
        return bool(self._worker) and self._worker not in self._ended

    def on_cpu(self) -> float:
        """Seconds that the worker's own process has used."""
        fields = Path(f"/proc/{self._worker}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def on_network(self, up: bool) -> bool:
        network(up=up)
        return up

    def on_processes(self) -> list[str]:
        """The command lines of all but this one and the worker."""
        found = list[str]()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                if line and int(entry.name) not in {1, self._worker}:
                    found.append(f"{entry.name} {line}")
        return found

    def on_run(self, argv: list[str], env: dict[str, str]) -> list[object]:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        return [done.returncode, done.stdout, done.stderr]

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended[ended[0]] = ended[1]


def _mounts(keep: list[str], hide: list[str]) -> None:
    """Of what lies below hidden directories, only what is kept can be seen."""
    _mount("--make-rprivate", "/")
    _mount("-t", "tmpfs", "none", "/mnt")
    stash = {path: Path(f"/mnt/{number}") for number, path in enumerate(keep)}
    for path, there in stash.items():
        there.mkdir()
        _mount("--rbind", path, str(there))
    for path in sorted(hide):
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", "mode=1777", "none", path)
    for path, there in stash.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount("--rbind", str(there), path)
    subprocess.run(("umount", "--lazy", "/mnt"), check=True)


def _small_home(home: Path, size: str) -> None:
    """On a disk of its own, with the files that the outside has put there."""
    files = {it: it.read_bytes() for it in home.iterdir()}
    _mount("-t", "tmpfs", "-o", f"size={size}", "none", str(home))
    for file, content in files.items():
        file.write_bytes(content)


def _mount(*argv: str) -> None:
    subprocess.run(("mount", *argv), check=True, capture_output=True, timeout=20)


def _listening(port: int) -> socket.socket:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", port))
    door.listen(128)
    return door


def network(*, up: bool) -> None:
    """While it is down nothing that was sent arrives, and nobody hears of that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        asked = struct.pack("16sh14x", b"lo", 0)
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(it, READ_FLAGS, asked))
        flags = flags | UP if up else flags & ~UP
        fcntl.ioctl(it, WRITE_FLAGS, struct.pack("16sh14x", b"lo", flags))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
