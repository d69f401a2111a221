"""Groups of commands, and their help: `-h`, a list with the whole first sentence of each command, and `help TOPIC`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import click

from monocontext.cli import verbosity
from monocontext.cli.parameters import Argument, make_command
from monocontext.options import nearest

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Settings of a program, which its groups and commands inherit."""

SYNONYMS = {
    "read": ("show", "cat"), "cat": ("show", "get"), "view": ("show", "get"), "print": ("show", "get"),
    "open": ("show", "get"), "get": ("show",), "find": ("search", "grep"), "query": ("search",), "grep": ("search",),
    "ls": ("list",), "push": ("upload",), "add": ("upload", "install"), "remove": ("uninstall", "rm"),
    "keys": ("list",), "set": ("put",), "delete": ("rm",), "ask": ("run",), "edit": ("update",),
    "change": ("update",), "replace": ("update",),
}  # fmt: skip
"""Words that people type instead of a command, and the commands that they may mean, the likeliest first."""
_WHOLE = 1_000
"""The longest help line of a command, in characters."""


class CommandGroup(click.Group):
    """Commands in the order in which they were added. Each also takes the options `verbosity.SHARED`.

    A command may be given as a place, `MODULE:NAME`, whose module is imported when the command is called.
    """

    def __init__(self, about: str, commands: Mapping[str, Callable[..., None]] | None = None) -> None:
        super().__init__(help=about, context_settings=_SETTINGS, no_args_is_help=True)
        self._places: dict[str, str] = {}
        for name, function in (commands or {}).items():
            self.add(function, name)

    def add(self, function: Callable[..., None], name: str | None = None, **settings: Any) -> None:
        """Add the command that calls a function."""
        from monocontext.cli.options import with_s3_options

        self.add_command(make_command(with_s3_options(function), name, **settings))

    def add_place(self, name: str, place: str) -> None:
        """Add the function or group at `place`."""
        self._places[name] = place

    def list_commands(self, ctx: Any) -> list[str]:
        names = {**dict.fromkeys(self._places), **self.commands}
        return sorted(names, key=lambda name: name == "help")  # `help` is last

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self._places and cmd_name not in self.commands:
            module, _, name = self._places[cmd_name].partition(":")
            found = getattr(import_module(module), name)
            if isinstance(found, click.Group):
                self.add_command(found, cmd_name)
            else:
                self.add(found, cmd_name)
        command = super().get_command(ctx, cmd_name)
        if command:
            taken = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
            command.params += [
                each
                for each in ctx.find_root().command.params
                if each.name in verbosity.SHARED and not taken.intersection(each.opts)
            ]
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that the first word names. The error for an unknown word suggests the nearest command."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            meant = next((f": did you mean {each}?" for each in SYNONYMS.get(args[0], ()) if each in names), None)
            near = meant or nearest(args[0], names) or f": commands are {', '.join(names)}"
            ctx.fail(f"no command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._about(ctx, name)) for name in self.list_commands(ctx)])

    def _about(self, ctx: Any, name: str) -> str:
        place = self._places.get(name)
        return _read_about(place) if place else str(self.get_command(ctx, name).get_short_help_str(_WHOLE))


def _read_about(place: str) -> str:
    """The first sentence of a function's docstring, or the `about` of a group, without an import of the module.

    Empty if the module is installed without its source.
    """
    import ast

    module, _, name = place.partition(":")
    loader: Any = getattr(find_spec(module), "loader", None)
    for node in ast.parse(loader.get_source(module) or "").body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return click.Command(None, help=ast.get_docstring(node)).get_short_help_str(_WHOLE)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            group: Any = node.value
            return str(group.args[0].value)
    return ""


def make_program(name: str, version: str, about: str) -> CommandGroup:
    """Make the group of a program's commands, with the command `help` and the options of the program itself."""

    def print_version(context: click.Context, _: object, wanted: bool) -> None:
        if wanted:
            print(f"{name} {version}")
            context.exit()

    def print_completion(context: click.Context, _: object, shell: str | None) -> None:
        if shell:
            from click.shell_completion import get_completion_class

            found: Any = get_completion_class(shell)
            if found is None:
                raise click.BadParameter(f"no completion for {shell!r}: known shells are bash, fish and zsh")
            print(found(context.command, {}, name, f"_{name.upper()}_COMPLETE").source())
            context.exit()

    early: dict[str, Any] = {"is_eager": True, "expose_value": False}
    shells = "Print a script that lets bash, fish or zsh complete words."
    program = CommandGroup(about)
    program.name = name
    program.params = [
        click.Option(["--version"], is_flag=True, callback=print_version, help="Print the version.", **early),
        click.Option(["--show-completion"], metavar="SHELL", callback=print_completion, help=shells, **early),
        *verbosity.make_options(),
    ]
    program.add_place("help", f"{__name__}:explain")
    return program


def _complete_help(incomplete: str) -> list[str]:
    return [name for name in _explained(click.get_current_context().find_root()) if name.startswith(incomplete)]


def _explained(program: Any) -> list[str]:
    from monocontext.cli.topics import TOPICS

    return [*TOPICS, *program.command.list_commands(program)]


def explain(
    context: click.Context,
    words: Annotated[list[str] | None, Argument(metavar="[TOPIC | COMMAND...]", autocompletion=_complete_help)] = None,
) -> None:
    """Explain a command, or a topic: config, credentials, environment, stores."""
    from monocontext.cli.topics import TOPICS

    found: Any = context.find_root()
    if words and len(words) == 1 and words[0] in TOPICS:
        print(TOPICS[words[0]])
        return
    for word in words or ():
        command = found.command.get_command(found, word) if isinstance(found.command, CommandGroup) else None
        if command is None:
            topics = f": topics are {', '.join(TOPICS)}, and `--help` lists the commands"
            near = nearest(word, _explained(context.find_root())) or topics
            raise click.BadParameter(f"no command or topic {' '.join(words or ())!r}{near}")
        found = click.Context(command, info_name=word, parent=found)
    print(found.get_help())
