"""How long a command takes to start, beside a bare Python: medians, and their ratio."""

import subprocess
import sys
import time
from statistics import median

RUNS = 15
BARE = [sys.executable, "-c", "pass"]
COMMANDS = {
    "lockgate --version": [sys.executable, "-m", "lockgate", "--version"],
    "lockgate task --help": [sys.executable, "-m", "lockgate", "task", "--help"],
}


def main() -> int:
    bare = milliseconds(BARE)
    print(f"{bare:8.1f} ms  python -c pass")
    for name, command in COMMANDS.items():
        took = milliseconds(command)
        print(f"{took:8.1f} ms  {name}  ({took / bare:.1f} times)")
    return 0


def milliseconds(command: list[str]) -> float:
    return median(_once(command) for _ in range(RUNS))


def _once(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return 1000 * (time.perf_counter() - begin)


if __name__ == "__main__":
    sys.exit(main())
