"""What an exit code says about a failure: the surroundings' fault, or the work's own."""

from typing import Literal

EXIT_COMPILATION_ERROR = 1
EXIT_NETWORK_TIMEOUT = 124
EXIT_DOCKER_DAEMON_UNAVAILABLE = 125
TRANSIENT_EXITS = frozenset({EXIT_NETWORK_TIMEOUT, EXIT_DOCKER_DAEMON_UNAVAILABLE, 126, 127, 128})

ErrorClass = Literal["TransientError", "PersistentError"]


class ErrorClassifier:
    """Asked about failures only; a process that was killed (None) counts against the work."""

    @staticmethod
    def classify(exit_code: int | None) -> ErrorClass:
        return "TransientError" if exit_code in TRANSIENT_EXITS else "PersistentError"
