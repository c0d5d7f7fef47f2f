"""Notifications arrive: at a service by Apprise, at a webhook's receiver, on the desktop."""

import io
import json
import stat
from http.client import HTTPSConnection
from pathlib import Path
from threading import Event, Thread

import pytest
from standardwebhooks import Webhook

from lockgate.adapters.notify import FileAddresses, ProcessNotifier, deliver
from lockgate.core.notices.text import Message
from lockgate.errors import BadConfig, Refused
from lockgate.ports.notify import Address, Letter
from tests.adapters.notify.receivers import receiver

pytestmark = pytest.mark.measured

LETTER = Letter(
    id="fix-login:4:approve",
    message=Message("shop/fix-login: approve sign_off", "Only pages of ours?"),
    facts={"type": "need.approve", "time": "2026-11-17T09:00:00+00:00", "need": {"ask": "ä\u2028"}},
)


def a_webhook(url: str) -> Address:
    return Address(name="hook", url=url, secret=ProcessNotifier().new_secret())


def test_a_webhook_is_signed_as_the_standard_s_own_library_verifies_it() -> None:
    with receiver() as got:
        address = a_webhook(f"{got.url}/here?x=1")

        assert ProcessNotifier().send(address, LETTER) == ""

    [(headers, body)] = got.came
    assert Webhook(address.secret).verify(body, headers) == LETTER.facts
    assert headers["webhook-id"] == LETTER.id
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(address.secret).verify(body + b" ", headers)


def test_a_redirection_is_not_followed() -> None:
    with receiver() as other, receiver(302, other.url) as got:
        why = ProcessNotifier().send(a_webhook(got.url), LETTER)

    assert "answered 302" in why
    assert other.came == []


@pytest.mark.parametrize("status", [400, 410, 500, 503])
def test_only_2xx_is_delivered(status: int) -> None:
    with receiver(status) as got:
        assert f"answered {status}" in ProcessNotifier().send(a_webhook(got.url), LETTER)


def test_a_receiver_that_is_down_is_a_reason_without_the_address_s_secret() -> None:
    why = ProcessNotifier().send(a_webhook("http://user:hunter22@127.0.0.1:9/tokentoken"), LETTER)

    assert "refused" in why
    assert "hunter22" not in why
    assert "tokentoken" not in why


def test_a_receiver_that_hangs_is_given_up() -> None:
    with receiver() as got:
        got.hang = Event()

        why = ProcessNotifier(deadline=3.0).send(a_webhook(got.url), LETTER)

    assert why == "it had not answered after 3 s"


def test_a_service_gets_the_message_by_apprise() -> None:
    with receiver(200) as got:
        address = Address(name="it", url=got.url.replace("http://", "json://"))
        notifier = ProcessNotifier()

        assert notifier.problem(address.url) == ""
        assert notifier.send(address, LETTER) == ""

    said = json.loads(got.came[0][1])
    assert (said["title"], said["message"]) == (LETTER.message.title, LETTER.message.body)


@pytest.mark.parametrize("url", ["nothing://x", "no url", "https://example.org/hook"])
def test_a_url_that_no_service_has_is_told(url: str) -> None:
    assert ProcessNotifier().problem(url) == "Apprise does not know this URL"


def test_the_desktop_is_told_by_notify_send(tmp_path: Path, monkeypatch) -> None:
    said = tmp_path / "said"
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {said}\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    letter = Letter(id="x", message=Message("-title", "a <b> & c"), facts={})

    assert ProcessNotifier().send(Address(name="d", url="desktop:"), letter) == ""

    assert said.read_text().splitlines()[1:] == ["--", "-title", "a &lt;b> &amp; c"]


# --- notify.json ---------------------------------------------------------------------------------


def test_addresses_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    them = FileAddresses(tmp_path)
    them.add(Address(name="a", url="json://secret", kinds=("stuck",)))

    assert them.all() == (Address(name="a", url="json://secret", kinds=("stuck",)),)
    assert stat.S_IMODE((tmp_path / "notify.json").stat().st_mode) == 0o600
    with pytest.raises(Refused, match="has that name already"):
        them.add(Address(name="a", url="json://other"))
    assert them.remove("a")
    assert not them.remove("a")


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def add(number: int) -> None:
        FileAddresses(tmp_path).add(Address(name=f"n{number}", url="json://x"))

    threads = [Thread(target=add, args=(it,)) for it in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(FileAddresses(tmp_path).all()) == 8


def test_a_task_is_muted_and_heard_again(tmp_path: Path) -> None:
    them = FileAddresses(tmp_path)
    them.mute("t1", muted=True)
    them.mute("t2", muted=True)
    them.mute("t1", muted=False)

    assert them.muted() == {"t2"}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"addresses": [{"name": 1}]}'])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "notify.json").write_text(text)

    with pytest.raises(BadConfig, match=r"notify.json was not read"):
        FileAddresses(tmp_path).all()


# --- the program that delivers ------------------------------------------------------------------


def test_without_apprise_a_service_is_told_how_to_install_it(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    for way in ("service", "known"):
        told = deliver.WAYS[way]({"url": "tgram://a/b"})

        assert told == "Apprise is not installed; pip install 'lockgate[notify]'"


def test_what_goes_wrong_in_a_delivery_is_its_answer(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"way": "webhook", "url": "https://a"}'))

    assert deliver.main() == 1
    assert capsys.readouterr().out == "KeyError: 'body'"


def test_a_webhook_by_https_has_its_certificate_checked() -> None:
    made = deliver._connection("https", "example.org", None)

    assert isinstance(made, HTTPSConnection)
    assert made._context.check_hostname  # type: ignore[attr-defined]  # there, but not in its types


def test_a_desktop_without_notify_send_is_told(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    notifier, desktop = ProcessNotifier(), Address(name="me", url="desktop://")

    assert notifier.problem(desktop.url) == "notify-send is not installed"
    assert "notify-send" in notifier.send(desktop, LETTER)
