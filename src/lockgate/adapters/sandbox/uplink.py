"""A way out for a box with a network of its own: pasta, a program outside that passes packets on.

Such a box does not see the abstract sockets of its user: the second way to close them, for
kernels whose Landlock cannot. Session runners read this: standard library only.
"""

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Sequence

# It stays our child, says only what failed, and passes loopback's ports on both ways.
OPTIONS = ("--foreground", "--quiet", "--config-net")
NS_GET_USERNS = 0xB701  # asks for the user namespace that a network belongs to
READY_WITHIN = 10.0  # seconds


class Uplink:
    """One running pasta, joined to a box that waits. It dies with the thread that started it."""

    def __init__(self, argv: Sequence[str], first: int) -> None:
        """`first` is the box's first process."""
        self._place = f"/tmp/lockgate-{os.urandom(8).hex()}"  # noqa: S108 - ours, 0700, and not guessed
        os.mkdir(self._place, 0o700)  # noqa: PTH102 - the runner has no pathlib
        network = os.open(f"/proc/{first}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        owner = fcntl.ioctl(network, NS_GET_USERNS)
        named = ("--userns", f"/proc/{os.getpid()}/fd/{owner}", "--netns", f"/proc/{first}/ns/net")
        try:
            self._process = subprocess.Popen(  # noqa: S603 - found where only root can write
                (*argv, *named, "--pid", f"{self._place}/pid"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            self.works = self._comes_up()
        finally:
            os.close(owner)
            os.close(network)
            self._remove_place()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _comes_up(self) -> bool:
        """It writes its file once it has set the box's network up."""
        until = time.monotonic() + READY_WITHIN
        while not os.path.exists(f"{self._place}/pid"):  # noqa: PTH110 - no pathlib
            if self._process.poll() is not None or time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True

    def _remove_place(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(f"{self._place}/pid")  # noqa: PTH108 - no pathlib
        os.rmdir(self._place)  # noqa: PTH106 - no pathlib
