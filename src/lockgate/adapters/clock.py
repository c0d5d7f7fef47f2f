"""Time and chance."""

import secrets
import time


class SystemClock:
    def now(self) -> float:
        return time.time()


class SystemChance:
    def suffix(self) -> str:
        return secrets.token_hex(2)

    def token(self) -> str:
        return secrets.token_urlsafe(32)


async def wait(milliseconds: float) -> None:
    time.sleep(milliseconds / 1000)  # noqa: ASYNC251 - a gate's thread has nothing else to do
