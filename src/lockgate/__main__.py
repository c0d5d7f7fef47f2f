"""`python -m lockgate`, and the `lockgate` command: the hot commands take the short way."""

import os
import sys

from lockgate import __version__
from lockgate.faces import client

HOT = (
    *(["task", it] for it in ("update", "complete", "list", "show", "why")),
    *(["gate", it] for it in ("list", "run", "check", "explain")),
    ["checkpoint"],
    ["queue", "list"],
    ["forge", "sync"],
    ["status"],
    ["inbox"],
)
BOARD = ["task", "list"]
INTERRUPTED = 130
SELDOM = 20_000  # new objects between two collections: usual ones take a tenth of the start


def main() -> None:
    argv = client.json_last(sys.argv[1:] or ([] if _opens_board() else BOARD))
    if argv == ["--version"]:  # as click says it, which takes long to load
        sys.stdout.write(f"lockgate, version {__version__}\n")
        return
    if argv == ["--help"]:
        from lockgate.faces.cli.commands import help_text  # noqa: PLC0415 - only here

        sys.stdout.write(f"{help_text()}\n")
        return
    if client.is_elsewhere() and "_LOCKGATE_COMPLETE" not in os.environ:
        from lockgate.faces.laptop import call  # noqa: PLC0415 - only where one is logged in

        call.main(argv)
    if argv == ["mcp"]:
        from lockgate.faces import pipe  # noqa: PLC0415 - only here

        pipe.main()
    try:
        code = client.call(argv) if _is_hot(argv) else None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    if code is not None:
        os._exit(code)  # at once: what was printed is out, and nothing else was begun
    import gc  # noqa: PLC0415 - the hot way must not load it

    gc.set_threshold(SELDOM)
    from lockgate.faces.cli import app  # noqa: PLC0415 - nor this

    app.main()


def _opens_board() -> bool:
    """On a terminal, `lockgate` alone opens the board, or prints it where that cannot be."""
    return os.isatty(0) and os.isatty(1) and not os.environ.get("LOCKGATE_SOCKET")


def _is_hot(argv: list[str]) -> bool:
    """Where a session's socket is named, nothing else is there to ask."""
    if os.environ.get("LOCKGATE_SOCKET"):
        return True
    alone = os.environ.get("LOCKGATE_NO_ORCHESTRATOR") or os.environ.get("_LOCKGATE_COMPLETE")
    asks = any(argv[: len(it)] == it for it in HOT) and "--help" not in argv
    return asks and not alone and not _judges_for_ci(argv)


def _judges_for_ci(argv: list[str]) -> bool:
    """A build server's variables are not handed on, nor a yes by one, and `gate` reads them."""
    if argv[0] != "gate":
        return False
    from lockgate.core.config.ci import SERVERS, TARGETS  # noqa: PLC0415 - only here

    return any(os.environ.get(it) for it in (*TARGETS, *SERVERS, "LOCKGATE_TRUST"))


if __name__ == "__main__":
    main()
