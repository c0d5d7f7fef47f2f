"""Has an agent propose how a repository is set up and tested, in a sandbox of its own."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from lockgate.core.discovery.commissioned import PROPOSAL, asked
from lockgate.core.discovery.found import Plan
from lockgate.core.model.agents import names_a_file
from lockgate.core.model.task import SessionId
from lockgate.errors import Refused
from lockgate.ports import Candidate
from lockgate.services.gates.runner import Cancelled
from lockgate.services.setup.doctor import PLAIN, Errand, Outcome, Trial
from lockgate.services.setup.init import not_accepted

SECONDS = 1800.0  # that it has
PAUSE = 200.0  # milliseconds


class Commission(Struct, frozen=True):
    trial: Trial
    delay: Callable[[float], object]  # in milliseconds

    def proposal(self, candidate: Candidate, agent: str, found: Plan, cancelled: Cancelled) -> str:
        """The text of the file that it wrote; nothing else of its work is kept."""
        agent = self._there(agent)
        errand = Errand(prompt=asked(found), seconds=SECONDS, candidate=candidate)
        id = self.trial.begin(agent, PLAIN, errand)
        try:
            outcome = self._ended(id, agent, cancelled)
            left = self.trial.left(id, PROPOSAL)
        finally:
            self.trial.forget(id)
        if left is None:
            raise not_accepted(agent, _nothing(outcome))
        return left

    def _there(self, agent: str) -> str:
        """By the name that the harnesses know it by."""
        known = self.trial.harnesses.keep(Path(agent)) if names_a_file(agent) else agent
        how = self.trial.harnesses.missing(known, PLAIN)
        if how:
            why = "its program is not installed"
            raise Refused(f"agent {agent} was not started", why=why, fix=how)
        return known

    def _ended(self, id: SessionId, agent: str, cancelled: Cancelled) -> Outcome:
        while not cancelled():
            outcome = self.trial.outcome(id, agent, PLAIN)
            if outcome:
                return outcome
            self.delay(PAUSE)
        return Outcome("", "it was interrupted", 0.0)


def _nothing(outcome: Outcome) -> str:
    said = outcome.why or outcome.said
    more = f". Its last words: {said}" if said else ""
    return f"it ended without writing {PROPOSAL}{more}"
