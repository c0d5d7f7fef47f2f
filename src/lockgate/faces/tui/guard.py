"""Gives the terminal back as it was when the board is ended by what no program can catch.

Standard library only: the process that waits has loaded nothing of the board.
"""

import os
import signal
import sys
import termios

# Out of the other screen, and off with all that Textual turns on: the mouse, focus, paste, keys.
MODES = (1000, 1002, 1003, 1004, 1006, 1015, 1016, 2004, 2026, 2048, 1049)
RESET = "".join(f"\x1b[?{mode}l" for mode in MODES) + "\x1b[<u\x1b[?25h\x1b[0m\r\n"
HANDED_ON = (signal.SIGTERM, signal.SIGHUP)
BY_A_SIGNAL = 128


def guard() -> int:
    """Goes on in a child, and returns there what is at its end once the parent is gone.

    The parent waits for the child and ends as it does; where the child was killed, it puts the
    terminal right first.
    """
    before = termios.tcgetattr(sys.stdin.fileno())
    seen, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        return seen
    os.close(seen)
    for number in HANDED_ON:
        signal.signal(number, lambda got, _: os.kill(child, got))
    signal.signal(signal.SIGINT, lambda *_: None)  # the board has a key for it
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        _put_right(before, -code)
        code = BY_A_SIGNAL - code
    os._exit(code)


def _put_right(before: list[int | list[bytes | int]], number: int) -> None:
    """Also where the terminal is another's by now: then a write would stop us."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
    told = f"lockgate: the board was ended by {signal.Signals(number).name}; nothing else was\n"
    os.write(sys.stdout.fileno(), f"{RESET}{told}".encode())
