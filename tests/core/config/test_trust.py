"""What a repository asks for beyond the sandboxed default, and what of it is new."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import (
    AgentSettings,
    CommitSettings,
    EnvSettings,
    MergeMode,
    MergeSettings,
    MergeTarget,
    NotifySettings,
    SandboxLevel,
    SandboxSettings,
    Service,
    Settings,
)
from lockgate.core.config.trust import (
    CONFIG,
    Question,
    Surroundings,
    agreed,
    from_origin,
    grown,
    names_a_host,
    origin_of,
    outside_words,
    requests,
)
from lockgate.core.model.task import Approval
from tests.given import a_task

PLAIN = Settings(formula="none", gates=())
BARE = SandboxSettings(level=SandboxLevel.NONE)
HOME = Surroundings(home="/home/ann")


def agent(*command: str, **more: tuple[str, ...]) -> tuple[AgentSettings, ...]:
    return (AgentSettings(name="mine", command=command, fallback="", **more),)


def says(settings: Settings, around: Surroundings = HOME) -> list[str]:
    return [it.says for it in requests(settings, around)]


# --- what is asked ------------------------------------------------------------------------------

SENTENCES = (
    (
        replace(PLAIN, sandbox=BARE),
        ["run its tests, its set-up and its agents without a sandbox"],
    ),
    (replace(PLAIN, sandbox=SandboxSettings(network=True)), ["give its gates the network"]),
    (
        replace(PLAIN, sandbox=SandboxSettings(allow=("127.0.0.1:5432",))),
        ["let its gates connect to 127.0.0.1:5432"],
    ),
    (
        replace(PLAIN, sandbox=SandboxSettings(read=("/home/ann/.ssh", "/opt/x"))),
        ["read ~/.ssh", "read /opt/x"],
    ),
    (
        replace(PLAIN, env=EnvSettings(copy=(".env",))),
        ["give its agents and gates a copy of your .env"],
    ),
    (
        replace(PLAIN, env=EnvSettings(passed=("PIP_INDEX_URL",))),
        ["pass PIP_INDEX_URL to its set-up"],
    ),
    (
        replace(PLAIN, agents=agent("tool", env=("AWS_SECRET_ACCESS_KEY",))),
        ["pass AWS_SECRET_ACCESS_KEY to its agent mine"],
    ),
    (
        replace(PLAIN, agents=agent("/srv/tools/bin/tool")),
        ["show /srv/tools/bin/tool to its agent mine, which runs it"],
    ),
    (replace(PLAIN, merge=MergeSettings(mode=MergeMode.AUTO)), ["land changes by itself"]),
    (
        replace(PLAIN, merge=MergeSettings(target=MergeTarget.REMOTE)),
        ["push what lands to origin"],
    ),
    (
        replace(PLAIN, services=(Service("db", "serve", env=(("DB", "a b"),)),)),
        ['set the variable DB of its agents and gates to "a b"'],
    ),
    (
        replace(PLAIN, notify=NotifySettings(urls=("env:CHAT",))),
        ["send notifications to the address in $CHAT"],
    ),
)


@pytest.mark.parametrize(("settings", "sentences"), SENTENCES)
def test_what_goes_beyond_the_sandboxed_default_is_said_in_plain_words(settings, sentences):
    assert says(settings) == sentences


HARMLESS = (
    PLAIN,
    replace(PLAIN, env=EnvSettings(setup="pip install -r requirements.txt")),
    replace(PLAIN, agents=agent("./agent.sh", resume=("./agent.sh", "--again"))),
    replace(PLAIN, agents=agent("tool", "--prompt", "{prompt}")),
)


@pytest.mark.parametrize("settings", HARMLESS)
def test_what_stays_in_the_sandbox_asks_nothing(settings):
    assert says(settings) == []


def test_a_program_of_the_repository_that_leaves_the_sandbox_is_asked_for_with_its_content():
    settings = replace(PLAIN, sandbox=BARE, agents=agent("sh", "./agent.sh", "{prompt}"))
    one = replace(HOME, programs={"./agent.sh": "1"})

    assert says(settings, one)[1] == (
        "run the program `sh ./agent.sh {prompt}` of this repository outside the sandbox,"
        " as its agent mine"
    )
    assert outside_words(settings) == ("sh", "./agent.sh")
    granted = {it.key for it in requests(settings, one)}
    assert grown(requests(settings, one), granted) == ()
    changed = requests(settings, replace(HOME, programs={"./agent.sh": "2"}))
    assert [it.says for it in grown(changed, granted)] == says(settings, one)[1:]


def test_a_path_that_leads_elsewhere_is_asked_for_by_where_it_leads():
    settings = replace(
        PLAIN,
        sandbox=SandboxSettings(read=("/srv/link",)),
        env=EnvSettings(copy=("keys/id",)),
    )
    around = replace(
        HOME, read={"/srv/link": "/home/ann/.aws"}, copy={"keys/id": "/home/ann/.ssh/id"}
    )

    assert says(settings, around) == [
        "read ~/.aws",
        "give its agents and gates a copy of your keys/id, which is ~/.ssh/id",
    ]


def test_a_word_cannot_pretend_to_be_the_rest_of_the_sentence():
    settings = replace(PLAIN, sandbox=SandboxSettings(read=("/x; and nothing else\x1b[2K",)))

    assert says(settings) == ['read "/x; and nothing else\\u001b[2K"']


# --- what is new --------------------------------------------------------------------------------


def test_less_than_was_granted_asks_nothing_and_more_asks_for_the_rest_alone():
    both = replace(PLAIN, sandbox=BARE, merge=MergeSettings(mode=MergeMode.AUTO))
    granted = {it.key for it in requests(both, HOME)}
    less = requests(replace(PLAIN, sandbox=BARE), HOME)
    more = requests(replace(both, env=EnvSettings(copy=(".env",))), HOME)

    assert grown(less, granted) == ()
    assert [it.says for it in grown(more, granted)] == [
        "give its agents and gates a copy of your .env"
    ]


def test_the_digest_is_of_what_is_asked_for_and_of_whose_repository_it_is():
    asked = requests(replace(PLAIN, sandbox=BARE, merge=MergeSettings(mode=MergeMode.AUTO)), HOME)
    mine = Question(asked=asked, origin="github.com/acme/x")

    assert mine.digest == replace(mine, asked=asked[::-1], new=asked).digest
    assert mine.digest != replace(mine, asked=asked[:1]).digest
    assert mine.digest != replace(mine, origin="github.com/evil/x").digest


# --- a human's yes to a change ------------------------------------------------------------------

EDITS = a_task(patch="p1", protected=(CONFIG,))
YES = Approval(gate="protected", patch="p1")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([replace(EDITS, approvals=(YES,))], True),
        ([replace(EDITS, to_land=True)], True),
        ([EDITS], False),
        ([replace(EDITS, approvals=(replace(YES, patch="p0"),))], False),
        ([replace(EDITS, to_land=True), EDITS], False),
        ([a_task(patch="p1", to_land=True)], False),
        ([], False),
    ],
)
def test_a_landing_is_a_yes_only_where_a_human_agreed_to_each_change_of_the_file(tasks, expected):
    assert agreed(tasks) is expected


# --- origins ------------------------------------------------------------------------------------

SAME = (
    "https://github.com/acme/x",
    "https://github.com/acme/x.git",
    "https://token@GitHub.com:443/acme/x.git/",
    "https://user:secret@github.com/acme/x.git",
    "ssh://git@github.com/acme/x.git",
    "ssh://git@github.com:22/acme/x",
    "git@github.com:acme/x.git",
    "github.com:acme/x",
)


@pytest.mark.parametrize("url", SAME)
def test_an_address_has_one_origin_in_every_form(url):
    assert origin_of(url) == "github.com/acme/x"


ODD = (
    "",
    "/srv/git/x.git",
    "../x",
    "file:///srv/x",
    "http://github.com/acme/x",
    "git://github.com/acme/x",
    "https://github.com/acme/../evil/x",
    "https://github.com/acme/./x",
    "https://github.com//acme/x",
    "https://github.com/acme/%2e%2e/evil",
    "https://github.com/acme/x?y",
    "https://github.com/acme/x#y",
    "https://evil.com\\@github.com/acme/x",
    "https://github.com/",
    "git@github.com:acme/../evil/x",
    "ext::sh -c evil",
)


@pytest.mark.parametrize("url", ODD)
def test_an_address_that_may_mean_something_else_has_no_origin(url):
    assert origin_of(url) == ""


def test_the_host_before_the_at_sign_is_not_the_origin():
    assert origin_of("https://github.com@evil.com/acme/x") == "evil.com/acme/x"
    assert origin_of("https://github.com:8443/acme/x") == "github.com:8443/acme/x"


def test_an_origin_is_trusted_by_a_pattern_that_names_its_host():
    assert from_origin("github.com/acme/x", ["github.com/acme/*"])
    assert not from_origin("github.com/acme-evil/x", ["github.com/acme/*"])
    assert not from_origin("evil.com/github.com/acme/x", ["github.com/acme/*"])
    assert not from_origin("", ["*"])
    assert [
        it for it in ("*", "*/acme/*", "git?ub.com/acme", "acme", "a/") if names_a_host(it)
    ] == []
    assert names_a_host("github.com/acme/*")


def test_a_name_for_merge_commits_that_is_not_the_users_is_asked_for() -> None:
    settings = Settings(
        formula="none", gates=(), commit=CommitSettings(identity="Bot <bot@acme.dev>")
    )

    [found] = requests(settings, Surroundings())

    assert found.says == 'make merge commits in the name of "Bot <bot@acme.dev>"'
