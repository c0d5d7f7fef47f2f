"""What `[merge] target = "pull_request"` and `[forge]` ask of a human, and of what steers CI."""

from msgspec.structs import replace

from lockgate.core.config.settings import (
    ForgeSettings,
    IntakeSettings,
    MergeSettings,
    MergeTarget,
    Settings,
    pin,
)
from lockgate.core.config.trust import Surroundings, requests

PLAIN = Settings(formula="none", gates=())
PULLS = MergeSettings(target=MergeTarget.PULL_REQUEST)


def asked(settings: Settings) -> list[str]:
    return [it.says for it in requests(settings, Surroundings())]


def test_pull_requests_bots_and_intake_are_agreed_to_one_by_one():
    forge = ForgeSettings(repo="o/r", bots=("x[bot]",), intake=IntakeSettings(label="go"))

    assert asked(replace(PLAIN, merge=PULLS, forge=forge)) == [
        "push branches to origin and open pull requests of o/r with your github login",
        "take x[bot] for a reviewer it can trust",
        "make tasks of issues labelled go",
    ]
    assert asked(replace(PLAIN, merge=PULLS)) == [
        "push branches to origin and open pull requests with your github login"
    ]
    assert asked(PLAIN) == []


def test_what_steers_ci_is_seen_by_a_human_before_the_first_push():
    assert pin(replace(PLAIN, merge=PULLS), "b", "c").lands_alone
    assert not pin(PLAIN, "b", "c").lands_alone
