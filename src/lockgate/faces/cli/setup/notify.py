"""`lockgate notify`: who is told of what needs a human."""

import click

from lockgate.bootstrap.outside import subscriptions_of
from lockgate.faces.cli.output import app, json_option, named, show
from lockgate.faces.words import task as words
from lockgate.services.task.subscriptions import Wanted, address_facts

NAME = click.argument("name", metavar="NAME")


@click.command()
@click.argument("url")
@click.option("--name", default="", metavar="NAME", help="What to call it; else by its service.")
@click.option("--for", "person", default="", metavar="PERSON", help="Who is told there.")
@click.option("--kinds", default="", metavar="KIND,…", help="Only these; else as [notify] says.")
@click.option("--projects", default="", metavar="NAME,…", help="Only of these projects.")
@click.option("--secret", default="", metavar="whsec_…", help="A webhook's own; else a new one.")
@json_option
def add(
    *, url: str, name: str, person: str, kinds: str, projects: str, secret: str, as_json: bool
) -> None:
    """Add a target: a service's URL as Apprise takes it, desktop:, or a webhook.

    A plain http or https URL gets webhooks by the Standard Webhooks rules, signed with the secret
    that is printed once. URLs are kept in notify.json in the home, which only you can read.
    """
    it = app()
    made = subscriptions_of(it).add(
        Wanted(
            name=name,
            url=url,
            secret=secret,
            person=person,
            kinds=_listed(kinds),
            projects=_listed(projects),
        ),
        it.caller,
    )
    text = f"{made.name} is added; to try it: lockgate notify test {made.name}"
    if made.secret:
        text += f"\n  webhooks are signed with {made.secret}"
    show({**address_facts(made), "secret": made.secret}, text, as_json=as_json)


@click.command("list")
@json_option
def list_targets(*, as_json: bool) -> None:
    """List the targets, without their URLs."""
    it = app()
    found, muted = subscriptions_of(it).shown(it.caller)
    rows = [("NAME", "WAY", "FOR", "KINDS", "PROJECTS")] if found else []
    rows += [
        (
            it.name,
            str(address_facts(it)["way"]),
            it.person or "–",
            ",".join(it.kinds) or "–",
            ",".join(it.projects) or "all",
        )
        for it in found
    ]
    lines = [words.table(rows)] if rows else ["nobody is told: lockgate notify add URL"]
    lines += [f"muted: {', '.join(muted)}"] if muted else []
    facts = {"targets": [address_facts(a) for a in found], "muted": muted}
    show(facts, "\n".join(lines), as_json=as_json)


@click.command()
@NAME
@json_option
def test(*, name: str, as_json: bool) -> None:
    """Send a test message to a target."""
    it = app()
    sent = subscriptions_of(it).test(name, it.caller)
    show(address_facts(sent), f"the test message was sent to {sent.name}", as_json=as_json)


@click.command()
@NAME
@json_option
def remove(*, name: str, as_json: bool) -> None:
    """Remove a target."""
    it = app()
    subscriptions_of(it).remove(name, it.caller)
    show({"removed": name}, f"{name} is removed", as_json=as_json)


@click.command()
@click.argument("name", metavar="TASK")
@click.option("--off", is_flag=True, help="Tell people of it again.")
@json_option
def mute(*, name: str, off: bool, as_json: bool) -> None:
    """Tell nobody of this task any more."""
    it = app()
    id = named(it, name)
    subscriptions_of(it).mute(id, it.caller, muted=not off)
    text = f"people are told of {id} again" if off else f"nobody is told of {id} any more"
    show({"task": id, "muted": not off}, text, as_json=as_json)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(it.strip() for it in text.split(",") if it.strip())
