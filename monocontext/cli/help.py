"""Define groups of commands with help: `-h`, an example for each command, and a list that imports no command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import click

from monocontext.cli import printing
from monocontext.cli.parameters import make_command
from monocontext.options import suggestion

SHARED = ("quiet", "verbose")  # the options of a program that each of its commands takes too


class HelpRow(NamedTuple):
    """A command in the help of a program."""

    module: str  # below the program's package; `MODULE:NAME` if the function has another name than the command
    about: str  # what it does; empty if it shares the line of the command above it
    example: str  # its arguments


class CommandGroup(click.Group):
    """A group of commands. Each command also takes the options in `SHARED`."""

    def __init__(self, about: str, commands: Mapping[str, Callable[..., None]] | None = None) -> None:
        settings = {"help_option_names": ["-h", "--help"]}
        super().__init__(help=about, context_settings=settings, no_args_is_help=True)
        for name, function in (commands or {}).items():
            self.add_command(make_command(function, name))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, or None. The first call adds the options in `SHARED` to the command."""
        command = super().get_command(ctx, cmd_name)
        if command:
            used_flags = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
            shared = [option for option in ctx.find_root().command.params if option.name in SHARED]
            command.params += [option for option in shared if not used_flags.intersection(option.opts)]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names. The error for an unknown word suggests the nearest command."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = suggestion(args[0], names) or f": commands are {', '.join(names)}"
            ctx.fail(f"no command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)


class Program(CommandGroup):
    """A program: its own options, and its commands by section. Calling a command imports its module."""

    def __init__(
        self, name: str, version: str, about: str, package: str, sections: Mapping[str, Mapping[str, HelpRow]]
    ) -> None:
        """`sections`: the rows of the commands, by section title, then by name. `package`: that of their modules."""
        super().__init__(about)
        self.name, self._package, self._sections = name, package, sections
        self._entries = {name: row for section in sections.values() for name, row in section.items()}
        click.version_option(version, message=f"{name} {version}", help="Print the version.")(self)
        self.params += [
            _flag("--quiet", "Print no remarks and no progress on stderr.", partial(_switch, printing.set_quiet)),
            _flag("--verbose", "Print log records on stderr.", partial(_switch, printing.show_logs)),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. In the words that a usage error quotes, secrets are hidden."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            message = printing.hide_secrets(error.format_message())
            if message == error.format_message():
                raise
            raise click.UsageError(message, error.ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(cmd_name)
        if entry and cmd_name not in self.commands:
            module, _, name = entry.module.partition(":")
            loaded = getattr(import_module(f"{self._package}.{module}"), name or cmd_name.replace("-", "_"))
            command = loaded if isinstance(loaded, click.Command) else make_command(loaded, cmd_name)
            command.epilog = f"Example: {self.name} {entry.example}"
            self.add_command(command, cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            rows: list[tuple[str, str]] = []
            for name, entry in section.items():
                if entry.about:
                    rows.append((name, entry.about))
                else:
                    names, about = rows.pop()
                    rows.append((f"{names}, {name}", about))
            with formatter.section(title):
                formatter.write_dl(rows)


def _flag(name: str, about: str, callback: Callable[..., None]) -> click.Option:
    """A flag of the program itself. Click calls `callback` whether the flag is given or not."""
    return click.Option([name], help=about, is_flag=True, expose_value=False, callback=callback)


def _switch(turn: Callable[[bool], None], context: click.Context, _: click.Parameter, is_set: bool) -> None:
    """Call `turn(True)` if the flag is given. If the program's own flag, which click handles before those of commands,
    is not given, call `turn(False)`: an earlier command in this process may have called `turn(True)`."""
    if is_set or context.parent is None:
        turn(is_set)
