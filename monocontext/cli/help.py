"""Groups of commands, and their help: `-h`, an example of each, and a list that imports none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from monocontext.cli import verbosity
from monocontext.cli.parameters import make_command
from monocontext.options import nearest

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Settings of a program, which its groups and commands inherit."""
_WHOLE = 1_000
"""The longest help line of a command, in characters."""


class Place(NamedTuple):
    """Where a command is defined, and what the list of commands says of it."""

    module: str
    """The module in the package of the commands; `MODULE:NAME` where the function or group has another name."""
    about: str
    example: str
    """The rest of a command line, behind the name of the program."""


class CommandGroup(click.Group):
    """Commands, each of which also takes the options `verbosity.SHARED`."""

    def __init__(self, about: str, commands: Mapping[str, Callable[..., None]] | None = None) -> None:
        super().__init__(help=about, context_settings=_SETTINGS, no_args_is_help=True)
        for name, function in (commands or {}).items():
            self.add(function, name)

    def add(self, function: Callable[..., None], name: str, **settings: Any) -> None:
        """Add the command that calls a function."""
        from monocontext.cli.options import with_s3_options

        self.add_command(make_command(with_s3_options(function), name, **settings))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command:
            taken = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
            command.params += [
                option
                for option in ctx.find_root().command.params
                if option.name in verbosity.SHARED and not taken.intersection(option.opts)
            ]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(_WHOLE)) for name in self.commands])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that the first word names. The error for an unknown word suggests the nearest command."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = nearest(args[0], names) or f": commands are {', '.join(names)}"
            ctx.fail(f"no command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)


class Program(CommandGroup):
    """The commands of a program, by section. A command's module is imported when the command is called."""

    def __init__(self, about: str, package: str, places: Mapping[str, Mapping[str, Place]]) -> None:
        super().__init__(about)
        self._package = package
        self._sections = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in self._sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        location = next((section[cmd_name] for section in self._sections.values() if cmd_name in section), None)
        if location and cmd_name not in self.commands:
            module, _, name = location.module.partition(":")
            command = getattr(import_module(f"{self._package}.{module}"), name or cmd_name.replace("-", "_"))
            example = f"Example: {self.name} {location.example}"
            if isinstance(command, click.Group):
                command.epilog = example
                self.add_command(command, cmd_name)
            else:
                self.add(command, cmd_name, epilog=example)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, location.about) for name, location in section.items()])


def make_program(
    name: str, version: str, about: str, package: str, places: Mapping[str, Mapping[str, Place]]
) -> Program:
    """Make the group of a program's commands, whose modules are in `package`, with the program's own options."""
    program = Program(about, package, places)
    program.name = name
    program.params = [
        click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, help="Print the version.",
                     callback=lambda context, _, wanted: wanted and (print(f"{name} {version}"), context.exit())),
        *verbosity.make_options(),
    ]  # fmt: skip
    return program
