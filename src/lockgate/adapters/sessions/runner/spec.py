"""What a session's runner is told, in spec.json."""

from typing import TypedDict


class Program(TypedDict):
    """What is to run. `program` encloses it and reads `options` by descriptor; empty: nothing does.

    Where something encloses it, its environment and directory stand in the options.
    """

    program: list[str]
    options: list[str]
    separate: list[str]  # the namespaces that it must not share with the runner
    uplink: list[str]  # what gives its own network a way out; empty where it shares ours
    argv: list[str]
    env: dict[str, str]
    directory: str


class Spec(TypedDict):
    token: str
    mark: str  # in the environment of all that the program starts
    home: str
    python: str
    run: Program
    stdin: str | None
    wall_seconds: float
    silent_seconds: float
    memory_mb: int  # 0 is no limit; also in the next one
    disk_mb: int
    places: list[str]  # what it may fill
    group: str  # the control group in which its own is made; empty where none can be made
    log_bytes: int
    interactive: bool
    secrets: list[list[str]]  # names and values that the logs must not show
