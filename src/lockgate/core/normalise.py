"""What is left of a text once all that differs from run to run is taken out."""

import re
from collections.abc import Sequence

_VOLATILE = re.compile(
    r"""
      \b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b  # a UUID
    | \b0x[0-9a-f]+                                    # an address
    | \b(?=[a-f]*\d)[0-9a-f]{7,}\b                     # an id, such as a commit's
    | \d+(?:[.,:]\d+)*                                 # a number, line:column, a time of day
      (?:\ ?(?:ns|us|µs|ms|s|sec|seconds?|min|minutes?|h|am|pm)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def normalise(text: str, workspaces: Sequence[str] = ()) -> str:
    """Two runs that failed in the same way give the same text. `workspaces` are directories."""
    roots = {workspace.rstrip("/") for workspace in workspaces} - {""}
    for root in sorted(roots, key=len, reverse=True):
        text = re.sub(re.escape(root) + r"(?![\w.-])/?", "", text)
    return " ".join(_VOLATILE.sub("<n>", text).split())
