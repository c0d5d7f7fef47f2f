"""`lockgate notify`: targets are added, listed, tried, muted and removed."""

import json

import pytest

from tests.adapters.notify.receivers import receiver
from tests.faces.shell import Shell

pytestmark = pytest.mark.measured


def test_a_webhook_is_added_tried_listed_and_removed(shell: Shell) -> None:
    with receiver() as got:
        added = shell.run("notify", "add", f"{got.url}/secret-path", "--kinds", "stuck", "--json")
        name, secret = added.facts["name"], added.facts["secret"]
        shell.did("notify", "test", name)

    listed = shell.run("notify", "list")
    assert secret.startswith("whsec_")
    assert json.loads(got.came[0][1])["type"] == "test"
    assert "stuck" in listed.out
    assert "secret-path" not in listed.out
    assert secret not in shell.did("notify", "list", "--json")
    shell.did("notify", "remove", name)
    assert "nobody is told" in shell.did("notify", "list")


def test_a_target_that_does_not_answer_is_told_in_three_parts(shell: Shell) -> None:
    shell.did("notify", "add", "http://127.0.0.1:9/", "--name", "mine")

    answer = shell.run("notify", "test", "mine")

    assert answer.code == 1
    assert "nothing arrived at mine" in answer.err
    assert "lockgate notify test mine" in answer.err


def test_a_name_that_is_not_there_is_told_with_the_one_that_is_meant(shell: Shell) -> None:
    shell.did("notify", "add", "http://127.0.0.1:9/", "--name", "phone")

    answer = shell.run("notify", "remove", "phon")

    assert answer.code == 1
    assert "Did you mean 'phone'?" in answer.err


def test_a_task_is_muted(shell: Shell) -> None:
    id = shell.did("task", "create", "fix", "Fix it").strip()

    shell.did("notify", "mute", id)
    assert id in shell.did("notify", "list")
    shell.did("notify", "mute", id, "--off")

    assert id not in shell.did("notify", "list")
