"""Build click commands from the signatures of functions, whose annotations describe options and arguments.

A parameter is `name: Annotated[TYPE, Option(...)] = default` or `Annotated[TYPE, Argument(...)]`. TYPE is `str`, `int`,
`float`, `bool`, one of these `| None`, or a `list[str]`. A parameter without a default is required.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter as Signed
from inspect import getdoc, signature
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

import click

from monocontext.cli.running import call_command

Complete = Callable[[str], list[str]]
"""Returns the values that begin with a word, for completion in a shell."""


class _Parameter(NamedTuple):
    """The description that options and arguments share."""

    help: str = ""
    metavar: str | None = None
    """The placeholder of the value in the help; by default its type."""
    parser: Callable[[str], Any] | None = None
    """Converts the text of the value, and that of its default."""
    min: Any = None
    max: Any = None
    autocompletion: Complete | None = None
    names: tuple[str, ...] | None = None
    """The flags of an option, such as `--line-number/--no-line-number`; None for an argument."""


def Option(*names: str, **about: Any) -> _Parameter:  # named as in typer
    """An option with these flags. Without a long flag it gets one from the parameter's name."""
    return _Parameter(**about, names=names)


def Argument(**about: Any) -> _Parameter:
    """A positional argument."""
    return _Parameter(**about)


def make_command(function: Callable[..., None], name: str | None = None, **settings: Any) -> click.Command:
    """Make the command that calls `function`, whose docstring is the help. `settings` go to `click.Command`.

    A parameter annotated with `click.Context` receives the context of the call.
    """
    signed = signature(function, eval_str=True).parameters.values()
    context = next((item.name for item in signed if item.annotation is click.Context), None)
    parameters = [_click_parameter(item) for item in signed if item.name != context]

    def call(**given: Any) -> None:
        here = click.get_current_context()
        if context is not None:
            given[context] = here
        here.exit(call_command(function, given, here.find_root().info_name or ""))

    return click.Command(
        name or function.__name__.replace("_", "-"), callback=call, params=parameters, help=getdoc(function), **settings
    )


def _click_parameter(signed: Signed) -> click.Parameter:
    """Make the option or argument of click for a parameter of a function."""
    kind, about = get_args(signed.annotation)
    kind = next((arg for arg in get_args(kind) if arg is not NoneType), kind) if NoneType in get_args(kind) else kind
    is_list = get_origin(kind) is list
    is_required = signed.default is Signed.empty
    settings: dict[str, Any] = {
        "type": _click_type(get_args(kind)[0] if is_list else kind, about),
        "metavar": about.metavar,
        "help": about.help,
        **({"required": True} if is_required else {"default": signed.default}),
        "callback": _list_or_none if is_list else None,
        "shell_complete": (complete := about.autocompletion) and (lambda _, __, word: complete(word)),
    }
    if about.names is None:
        return click.Argument([signed.name], nargs=-1 if is_list else 1, **settings)
    word = signed.name.replace("_", "-")
    flags = [*about.names] if any(name.startswith("--") for name in about.names) else [*about.names, f"--{word}"]
    if kind is bool:
        del settings["type"], settings["metavar"]
        settings["is_flag"] = True
        flags = flags if about.names else [f"--{word}/--no-{word}"]
    is_shown = kind is not bool and settings.get("default") not in (None, "")
    return click.Option([*flags, signed.name], multiple=is_list, show_default=is_shown, **settings)


def _click_type(kind: Any, about: _Parameter) -> Any:
    if about.parser is not None:
        return about.parser
    if about.min is None and about.max is None:
        return kind
    return click.IntRange(about.min, about.max) if kind is int else click.FloatRange(about.min, about.max)


def _list_or_none(_: click.Context, __: click.Parameter, value: tuple[Any, ...]) -> list[Any] | None:
    """The values of a repeatable option. None, the default of the function, if it is not given."""
    return list(value) or None
