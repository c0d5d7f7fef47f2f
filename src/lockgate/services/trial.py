"""One prompt to an agent from where it would work, in a throw-away place."""

from dataclasses import dataclass
from pathlib import Path

from lockgate.core.config.settings import SandboxLevel, Settings
from lockgate.core.model.agents import Ending, Exit, Job
from lockgate.core.model.task import Role, SessionId
from lockgate.ports import Chance, Credentials, Desk, Harnesses, Sessions, Start, Workspaces

PROMPT = "This is a test of the connection. Use no tools. Answer with one word: ready"
SECONDS = 180.0
SCRIPT = '[[worker]]\nsteps = [ { say = "ready" } ]\n'  # for the agent that plays one


@dataclass(frozen=True, slots=True)
class Outcome:
    """`why` is empty where it answered."""

    said: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    home: Path
    workspaces: Workspaces
    sessions: Sessions
    harnesses: Harnesses
    credentials: Credentials
    chance: Chance

    def begin(self, agent: str, settings: Settings) -> SessionId:
        id = SessionId(f"trial-{self.chance.suffix()}")
        start = self._start(id, agent, settings)
        try:
            self.workspaces.write(start.desk.directory, {})
            self.workspaces.write(start.desk.directory / ".lockgate", {"script.toml": SCRIPT})
            self.workspaces.write(start.base, {})
            self.sessions.start(start)
        except BaseException:
            self.forget(id)
            raise
        return id

    def outcome(self, id: SessionId, agent: str, settings: Settings) -> Outcome | None:
        """None while it has not ended."""
        exit = self.sessions.exit_of(id)
        if exit is None:
            return None
        output = self.sessions.output(id)
        report = self.harnesses.read(agent, settings, output, exit)
        why = report.failure or _cut_short(exit)
        if not why and report.limited_until is not None:
            why = "its usage limit is reached"
        return Outcome(report.said, why, exit.seconds)

    def forget(self, id: SessionId) -> None:
        """Also where it has not ended."""
        self.sessions.remove(id)
        self.workspaces.discard(self._place(id))

    def _place(self, id: SessionId) -> Path:
        return self.home / "trials" / id

    def _start(self, id: SessionId, agent: str, settings: Settings) -> Start:
        names = self.harnesses.variables(agent, settings)
        job = Job(
            prompt=PROMPT,
            role=Role.WORKER,
            task="trial",
            session=id,
            environ=self.credentials.of(agent, names),
        )
        return Start(
            session=id,
            token=self.chance.token(),
            launch=self.harnesses.launch(agent, settings, job),
            desk=Desk(directory=self._place(id) / "desk"),
            home=self._place(id) / "home",
            base=self._place(id) / "base",
            read=(*self.harnesses.paths(agent, settings), *settings.sandbox.read),
            sandboxed=settings.sandbox.level is SandboxLevel.AUTO,
            wall_seconds=SECONDS,
            silent_seconds=SECONDS,
        )


def _cut_short(exit: Exit) -> str:
    return "" if exit.ending is Ending.EXITED else f"it was ended: {exit.ending}"
