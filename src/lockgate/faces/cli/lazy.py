"""A click group that imports a command's module only when that command is called."""

from importlib import import_module

import click


class Lazy(click.Group):
    """`places` names each command's function as `module:function`."""

    places: dict[str, str]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, name = place.split(":")
        command: click.Command = getattr(import_module(module), name)
        return command


def lazy_group(places: dict[str, str]) -> type[Lazy]:
    return type("LazyGroup", (Lazy,), {"places": places})
