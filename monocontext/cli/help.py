"""Show the help of commands: by `-h` too, with the whole first sentence of each, and by `help TOPIC`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from monocontext.cli import verbosity
from monocontext.cli.topics import TOPICS
from monocontext.options import nearest

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Settings of a program, which its groups and commands inherit."""

SYNONYMS = {
    "read": ("show", "cat"), "cat": ("show", "get"), "view": ("show", "get"), "print": ("show", "get"),
    "open": ("show", "get"), "get": ("show",), "find": ("search", "grep"), "query": ("search",), "grep": ("search",),
    "ls": ("list",), "push": ("upload",), "add": ("upload", "install"), "remove": ("uninstall", "rm"),
}  # fmt: skip
"""Words that people type for a command, and the commands that they may mean."""
_WHOLE = 1_000


class CommandGroup(TyperGroup):
    """A group whose list of commands wraps long lines, which click cuts, and whose members take `verbosity.SHARED`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command:
            taken = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
            command.params += [
                each
                for each in ctx.find_root().command.params
                if each.name in verbosity.SHARED and not taken.intersection(each.opts)
            ]
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words begin with. Another word than those that are there names the nearest, by its
        letters or by what it means."""
        if args and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
            meant = next((f": did you mean {each}?" for each in SYNONYMS.get(args[0], ()) if each in names), None)
            near = meant or nearest(args[0], names) or f": there are {', '.join(names)}"
            if not args[0].startswith("-"):
                ctx.fail(f"no command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in found if each and not each.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def add_help(program: typer.Typer) -> None:
    """Give a program the command `help`, after its own."""
    program.command("help", help=f"Explain a command, or a topic: {', '.join(TOPICS)}.")(_help)


def _complete_help(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _explained(ctx.find_root()) if name.startswith(incomplete)]


def _explained(program: Any) -> list[str]:
    return [*TOPICS, *program.command.list_commands(program)]


def _help(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC | COMMAND...]", autocompletion=_complete_help)
    ] = None,
) -> None:
    found: Any = context.find_root()
    if words and len(words) == 1 and words[0] in TOPICS:
        print(TOPICS[words[0]])
        return
    for word in words or ():
        command = found.command.get_command(found, word) if isinstance(found.command, TyperGroup) else None
        if command is None:
            near = nearest(word, _explained(context.find_root())) or f": topics are {', '.join(TOPICS)}"
            raise typer.BadParameter(f"no command {' '.join(words or ())!r}{near}")
        found = typer.Context(command, info_name=word, parent=found)
    print(found.get_help())


def command_group(about: str, *, is_program: bool = False) -> typer.Typer:
    """A group of commands with this help text; its errors keep their plain traceback. A program completes in shells."""
    return typer.Typer(
        cls=CommandGroup,
        context_settings=SETTINGS,
        help=about,
        no_args_is_help=True,
        add_completion=is_program,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
