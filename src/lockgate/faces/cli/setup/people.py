"""`lockgate people`: who may look, work, land and administer."""

import click

from lockgate.bootstrap import uid_of_user
from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.model.facts import json_facts
from lockgate.core.model.people import Person, Right
from lockgate.errors import Refused
from lockgate.faces.cli.output import app, json_option, show
from lockgate.faces.words.task import one_line, table

NAME = click.argument("name")


@click.command()
@NAME
@click.option(
    "--may", required=True, type=click.Choice([it.value for it in Right]), help="What they may do."
)
@click.option("--user", metavar="USER", help="Their user on this machine; default: NAME.")
@json_option
def add(*, name: str, may: str, user: str | None, as_json: bool) -> None:
    """Give somebody a name and a right, or another right.

    Each right has those before it: look; work (create, answer, move, send back); land (say yes to a
    gate, a landing, a revert); admin (people, logins, trust). The owner of the home has all.
    """
    it = app()
    uid = uid_of_user(user or name)
    if user is not None and uid is None:
        raise Refused(
            f"{name!r} was not added",
            why=f"this machine has no user {user!r}",
            fix="name one, or leave --user out",
        )
    person = it.members.add(name, Right(may), uid, it.caller)
    show(_facts(person), _text(person), as_json=as_json)


@click.command("list")
@json_option
def list_people(*, as_json: bool) -> None:
    """List the people of this home with what each may do."""
    it = app()
    found = it.members.all(it.caller)
    text = table([("NAME", "MAY", "USER"), *(_row(person) for person in found)])
    empty = "nobody is listed: the owner of the home has all rights"
    show([_facts(person) for person in found], text if found else empty, as_json=as_json)


@click.command()
@NAME
@json_option
def remove(*, name: str, as_json: bool) -> None:
    """Take somebody's name and right away; what they did keeps their name.

    Their browsers, laptops and tokens are logged out.
    """
    it = app()
    it.members.remove(name, it.caller)
    web_logins_of(it).forget(name, it.caller)
    show({"removed": name}, f"{one_line(name)} is no longer listed", as_json=as_json)


def _row(person: Person) -> tuple[str, str, str]:
    uid = "no user of this machine" if person.uid is None else f"uid {person.uid}"
    return one_line(person.name), person.may, uid


def _text(person: Person) -> str:
    name, may, uid = _row(person)
    return f"{name} ({uid}) may {may}"


def _facts(person: Person) -> dict[str, object]:
    """Without the token's hash, which is nobody's business."""
    return {key: value for key, value in json_facts(person).items() if key != "token_hash"}
