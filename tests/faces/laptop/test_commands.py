"""What a laptop sends to its server, and what it does not: commands, files, the clone it is in."""

import os
from urllib.parse import parse_qs

import pytest

from lockgate.errors import LockgateError, Refused
from lockgate.faces.cli import commands as known
from lockgate.faces.cli import groups
from lockgate.faces.laptop import commands
from lockgate.faces.laptop.bridge import headers_of
from lockgate.faces.laptop.server import address, fingerprint


def test_every_command_has_one_place() -> None:
    elsewhere = {"mcp", "task", "queue", "pr", "issue", "gate", "web"}
    far = {it[0] for it in commands.FAR if len(it) == 1}
    seated = {it[0] for it in commands.SEATED if len(it) == 1}
    placed = [*far, *seated, *(commands.HERE - {"--version"} - elsewhere), *commands.THERE]

    assert sorted(placed) == sorted(set(known.COMMANDS) - elsewhere)
    assert {it[1] for it in commands.FAR | commands.SEATED if it[0] == "task"} == {*groups.TASK} - {
        "import"
    }


@pytest.mark.parametrize(
    ("argv", "far"),
    [
        (["status"], True),
        (["status", "--json"], True),
        (["task", "--json", "list"], True),
        (["web", "login"], True),
        (["web"], False),
        (["web", "token", "ci"], False),
        (["web", "--port", "1", "login"], False),
        (["task", "import", "TASK.md"], False),
        (["task"], False),
        (["up", "status"], False),
        (["queue", "simulate"], False),
        (["people", "add", "eve", "--may", "admin"], False),
        (["trust", "--yes"], False),
        ([], False),
    ],
)
def test_only_what_is_named_is_done_for_people_elsewhere(argv: list[str], far: bool) -> None:
    assert commands.is_far(argv) is far


@pytest.mark.parametrize(
    ("argv", "sent"),
    [
        (["run", "--file", "a.md"], ["run", "--file", "-"]),
        (
            ["task", "create", "b", "--context=a.md", "s"],
            ["task", "create", "b", "--context=-", "s"],
        ),
        (["task", "create", "--plan", "a.md"], ["task", "create", "--plan", "-"]),
    ],
)
def test_a_file_is_read_here(tmp_path, monkeypatch, argv: list[str], sent: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("Say it\n")

    assert commands.with_files(argv) == (sent, b"Say it\n")


@pytest.mark.parametrize(
    "argv", [["run", "--file"], ["run", "x"], ["shell", "x", "--", "ls", "--file", "y"]]
)
def test_what_names_no_file_is_sent_as_it_is(argv: list[str]) -> None:
    assert commands.with_files(argv) == (argv, b"")


def test_a_file_that_cannot_be_read_or_is_too_long_is_told(tmp_path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (2 << 20))

    with pytest.raises(Refused, match="No such file"):
        commands.with_files(["run", "--file", str(tmp_path / "none")])
    with pytest.raises(Refused, match="more than 1 MB"):
        commands.with_files(["run", "--file", str(tmp_path / "long")])


ORIGIN = '[core]\n\tbare = false\n[remote "up"]\n\turl = no\n[Remote "origin"]\n\tURL = git@h:a/b\n'


def test_a_clone_is_known_by_its_origin_and_name(tmp_path, monkeypatch) -> None:
    inside, tree = tmp_path / "shop" / "src", tmp_path / "tree"
    inside.mkdir(parents=True)
    git = tmp_path / "shop" / ".git"
    (git / "worktrees" / "tree").mkdir(parents=True)
    (git / "config").write_text(ORIGIN)
    (git / "worktrees" / "tree" / "commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/tree\n")

    monkeypatch.chdir(inside)
    assert parse_qs(commands.where()) == {"origin": ["git@h:a/b"], "name": ["shop"]}
    monkeypatch.chdir(tree)
    assert parse_qs(commands.where()) == {"origin": ["git@h:a/b"], "name": ["tree"]}
    (git / "config").write_text("[core]\n")
    assert parse_qs(commands.where()) == {"name": ["tree"]}
    monkeypatch.setenv("LOCKGATE_PROJECT", "api")
    assert commands.where() == "project=api"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://ann:SECRET@host/a/b", "https://host/a/b"),
        ("https://SECRET@host:8443/a/b.git", "https://host:8443/a/b.git"),
        ("https://ann:SEC@RET@host/a@b", "https://host/a@b"),
        ("ssh://git@host/a/b", "ssh://host/a/b"),
        ("https://host/a@b", "https://host/a@b"),
        ("git@host:a/b", "git@host:a/b"),
        ("/srv/a@b", "/srv/a@b"),
    ],
)
def test_no_credentials_of_an_origin_leave_the_laptop(url: str, told: str) -> None:
    assert commands.origin_in(f'[remote "origin"]\n\turl = {url}\n') == told


def test_outside_a_clone_nothing_is_told(tmp_path, monkeypatch) -> None:
    (tmp_path / ".git").write_text("no link\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)

    assert commands.where() == ""
    os.rmdir(gone)  # noqa: PTH106 - the directory that we are in
    assert commands.where() == ""


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("build.example.org", "https://build.example.org"),
        ("https://Build.example.org:443/login?link=x", "https://build.example.org"),
        ("https://build:8443/", "https://build:8443"),
        ("https://[::1]:8443", "https://[::1]:8443"),
        ("http://lg-1.localhost:8440", "http://lg-1.localhost:8440"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("https://my_host:8443", "https://my_host:8443"),
        ("https://build.example.org.", "https://build.example.org."),
    ],
)
def test_an_address_is_one_origin(said: str, meant: str) -> None:
    assert address(said) == meant


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("http://build.example.org", "could read the token"),
        ("http://127.evil.example", "could read the token"),
        ("ftp://build", "is no address"),
        ("https://", "is no address"),
        ("https://ann:x@build", "is no address"),
        ("https://build:port", "is no address"),
        ("https://a..b", "is no address"),
        ("https://a b.example", "is no address"),
        ("https://-a.example", "is no address"),
        ("https://[::1", "is no address"),
        ("https://" + "a" * 64, "is no address"),
    ],
)
def test_a_token_goes_nowhere_in_the_clear(said: str, why: str) -> None:
    with pytest.raises(LockgateError, match=why):
        address(said)


def test_a_fingerprint_is_taken_as_openssl_prints_it() -> None:
    pairs = ":".join(["AB"] * 32)

    assert fingerprint(f"sha256 Fingerprint={pairs}\n") == "ab" * 32 == fingerprint("ab" * 32)
    with pytest.raises(LockgateError, match="64 digits"):
        fingerprint("ab:cd")


def test_the_newer_protocol_of_mcp_says_its_message_in_headers_too() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    call = {"id": 1, "method": "tools/call", "params": {"name": "wäre", "_meta": meta}}

    assert headers_of(call, "") == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?d8OkcmU=?=",
    }
    assert headers_of({"method": "ping"}, "2025-11-25") == {"MCP-Protocol-Version": "2025-11-25"}
    assert headers_of({"method": "initialize"}, "2025-11-25") == {}
