"""Every key of the configuration is marked: it asks its user, or it is harmless."""

import tomllib
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from msgspec import Struct
from msgspec.structs import fields
from pydantic import BaseModel

from lockgate.adapters.config.complaints import model_of
from lockgate.adapters.config.load import load_config
from lockgate.adapters.config.schema import Config
from lockgate.core.config.trust import KEYS, Mark, Surroundings, requests
from lockgate.errors import BadConfig

ASKING = {
    "env.copy": '[env]\ncopy = [".env"]',
    "env.pass": '[env]\npass = ["PIP_INDEX_URL"]',
    "sandbox.level": '[sandbox]\nlevel = "none"',
    "sandbox.network": "[sandbox]\nnetwork = true",
    "sandbox.allow": '[sandbox]\nallow = ["127.0.0.1:5432"]',
    "sandbox.read": '[sandbox]\nread = ["/srv/x"]',
    "services.env": '[[services]]\nservice = "redis"\nenv = {MODEL_URL = "http://x"}',
    "merge.mode": '[merge]\nmode = "auto"',
    "merge.target": '[merge]\ntarget = "remote"',
    "forge.kind": '[merge]\ntarget = "pull_request"\n[forge]\nkind = "github"',
    "forge.repo": '[merge]\ntarget = "pull_request"\n[forge]\nrepo = "o/r"',
    "forge.bots": '[forge]\nbots = ["x[bot]"]',
    "forge.intake.label": '[forge.intake]\nlabel = "lockgate"',
    "commit.identity": '[commit]\nidentity = "Bot <bot@acme.dev>"',
    "notify.urls": '[notify]\nurls = ["env:NTFY"]',
    "agents.command": '[agents.mine]\ncommand = ["/srv/x"]',
    "agents.resume": '[agents.mine]\ncommand = ["x"]\nresume = ["/srv/x"]',
    "agents.env": '[agents.mine]\ncommand = ["x"]\nenv = ["KEY"]',
}
HARMLESS = """
project = {base = "trunk", agent = "scripted", slots = 9, respawn = "manual", resume = "manual"}
commands = {test = "make test", typecheck = "mypy"}
env = {setup = "curl x | sh", inputs = ["x"]}
tests = {paths = ["t"]}
differential = {strength_seconds = 5}
protect = {paths = ["x"]}
retry = {strategy = "fresh", fresh_after_failures = 1, max_iterations = 9}
sandbox = {memory_mb = 99999, scratch_mb = 99999, session_disk_mb = 99999, pids = 99999}
merge = {strategy = "squash", window = 9, batch = 9, fence = "ref"}
forge.draft = "early"
forge.auto_merge = "github"
forge.comments = "wait"
forge.settle = 9
forge.ci_wait = 99
forge.rounds = 9
forge.sign = true
forge.intake.max_open = 9
commit = {author = "agent"}
fleet = {needs = ["linux-arm"]}
budget = {task_usd = 0.0, task_tokens = 9, task_minutes = 0, day_usd = 9.0}
[notify]
kinds = []
urgent = ["stuck"]
quiet = "22:00-07:00"
digest = "08:30"
remind = ""
budget = [0.1]
[limits]
step_failures = 9
call_attempts = 9
call_base_delay_ms = 9
call_backoff = 9.0
crashes = 9
review_rounds = 9
escalation_threshold = 9
[gates]
formula = "solo"
skip = ["differential"]
[[gates.list]]
name = "x"
type = "command"
command = "x"
serial = false
fail_fast = true
attempts = 9
timeout = 9
report = "tap"
exclusive = "x"
needs = ["gpu"]
on = ["train"]
paths = ["x/**"]
when = "task.priority == 1"
[[gates.list]]
name = "y"
type = "parallel_review"
dimensions = ["security", "style"]
advisory = ["style"]
reviewer = "codex"
[[gates.list]]
name = "z"
type = "human"
prompt = "x"
approvers = ["ann"]
[[steps]]
name = "x"
phase = "RED"
command = "x"
expect = "fail"
after = []
[[services]]
name = "x"
command = "x"
ready = "x"
port = 5432
prepare = "x"
inputs = ["x"]
[[services]]
service = "postgres"
[agents.mine]
command = ["./agent.sh", "{prompt}"]
resume = ["agent", "{session}"]
fallback = "codex"
"""
HOME = Surroundings(home="/home/ann")


def keys(table: type[Struct], before: str = "") -> Iterator[str]:
    """Each key of the schema, of tables in lists and by name too."""
    for field in fields(table):
        key = f"{before}{field.encode_name}"
        tables = [it for it in _within(field.type) if issubclass(it, Struct)]
        if tables:
            yield from keys(tables[0], f"{key}.")
        else:
            yield key


def _within(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for part in get_args(annotation):
        yield from _within(part)


def test_every_key_of_the_schema_is_marked_and_no_other():
    found = list(keys(Config))

    assert len(found) > 60
    assert set(found) == set(KEYS)


def test_every_key_that_is_marked_as_asking_asks():
    assert set(ASKING) == {key for key, mark in KEYS.items() if mark is Mark.ASKS}


@pytest.mark.parametrize("key", ASKING)
def test_a_key_that_goes_beyond_the_sandboxed_default_asks(key):
    text = f"{ASKING[key]}\n[gates]\nformula = 'none'\n"

    assert requests(load_config(text, origin="a test"), HOME)


def test_no_other_key_asks_whatever_it_says():
    assert requests(load_config(HARMLESS, origin="a test"), HOME) == ()
    written = model_of(Config).model_validate(_plain(HARMLESS))
    unset = {key for key in _unset(written) if KEYS[key] is Mark.HARMLESS}
    assert unset == set(), "the text above has each of them"


def _plain(text: str) -> dict[str, Any]:

    return tomllib.loads(text)


def _unset(model: BaseModel, before: str = "") -> set[str]:
    """The keys that no table of this kind says anything of."""
    found: set[str] = set()
    for name, field in type(model).model_fields.items():
        key, value = f"{before}{field.alias or name}", getattr(model, name)
        many = list(value.values()) if isinstance(value, dict) else value
        parts = many if isinstance(many, list) else [value]
        tables = [it for it in parts if isinstance(it, BaseModel)]
        if tables:
            found |= set.intersection(*(_unset(it, f"{key}.") for it in tables))
        elif name not in model.model_fields_set:
            found.add(key)
    return found


def test_a_relative_path_to_read_is_no_path():

    with pytest.raises(BadConfig, match="is relative"):
        load_config("[sandbox]\nread = ['x']\n[gates]\nformula = 'none'\n", origin="a test")
