"""Build click commands from the signatures of functions, whose annotations describe options and arguments.

A parameter is `name: Annotated[TYPE, Option(...)] = default`, `Annotated[TYPE, Argument(...)]`, or
`Annotated[TYPE, OptionGroup(build)]`. TYPE is one that click knows, `TYPE | None`, or a `list[str]`. A parameter
without a default is required.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from inspect import Parameter, getdoc, signature
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, get_args, get_origin

import click

from monocontext.cli.running import call_command

AT_LEAST_1 = click.IntRange(min=1)
AT_LEAST_0 = click.IntRange(min=0)
NOT_NEGATIVE = click.FloatRange(min=0)
INTERVAL = click.FloatRange(min=0.1)  # in seconds


class _Declaration(NamedTuple):
    """What an annotation says of an option or an argument."""

    flags: tuple[str, ...] | None  # those of an option; None for an argument
    settings: dict[str, Any]  # keywords of click's class, which win over what the annotation says


def Option(*flags: str, **settings: Any) -> _Declaration:  # named as in typer
    """An option with these flags. If none is long, the parameter's name becomes the long flag."""
    return _Declaration(flags, settings)


def Argument(**settings: Any) -> _Declaration:
    """A positional argument."""
    return _Declaration(None, settings)


class OptionGroup(NamedTuple):
    """Options that several commands share: the parameters of `build`, whose result is the argument of the command."""

    build: Callable[..., Any]
    defaults: Mapping[str, Any] = MappingProxyType({})  # defaults of this command, by parameter


def make_command(
    function: Callable[..., None], name: str | None = None, *, kind: type[click.Command] = click.Command
) -> click.Command:
    """Make the command that calls `function`. Its help is the docstring, and lists options of groups last."""
    parameters, shared = list[click.Parameter](), list[click.Parameter]()
    groups = dict[str, OptionGroup]()
    for parameter in _parameters_of(function).values():
        declaration = get_args(parameter.annotation)[1]
        if not isinstance(declaration, OptionGroup):
            parameters.append(_click_parameter(parameter, parameter.default))
            continue
        groups[parameter.name] = declaration
        for option_name, option in _parameters_of(declaration.build).items():
            shared.append(_click_parameter(option, declaration.defaults.get(option_name, option.default)))
    positional = [parameter.name for parameter in parameters if isinstance(parameter, click.Argument)]

    def call(**arguments: Any) -> None:
        if positional[:1] == ["url"] and len(positional) > 1:
            url, second = arguments["url"], str(arguments[positional[1]])
            if is_stored_text(second) and not is_location(url):
                raise click.UsageError(f"no text at {url!r}: the URL comes first")
        for argument, group in groups.items():
            options = {option: arguments.pop(option) for option in signature(group.build).parameters}
            arguments[argument] = group.build(**options)
        context = click.get_current_context()
        context.exit(call_command(function, arguments, context.find_root().info_name or ""))

    help_text = getdoc(function) or ""
    name = name or function.__name__.replace("_", "-")
    summary = _first_sentence(help_text)
    return kind(name, callback=call, params=parameters + shared, help=help_text, short_help=summary)


def _parameters_of(build: Callable[..., Any]) -> Mapping[str, Parameter]:
    """The parameters of a function or a class, with evaluated annotations."""
    return signature(build, globals=vars(sys.modules[build.__module__]), eval_str=True).parameters


def _first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    sentence = text.partition(".\n\n")[0].partition(". ")[0]
    return " ".join(sentence.split()).rstrip(".") + "."


def is_location(word: str) -> bool:
    """Whether a word is a URL, or a path that exists."""
    return "://" in word or os.path.exists(word)  # a `Path` raises for a long pattern


def is_stored_text(word: str) -> bool:
    """Whether a word is a URL, or the path of a stored text."""
    return "://" in word or all(os.path.exists(os.path.join(word, name)) for name in ("generations", "manifest.json"))


def _click_parameter(parameter: Parameter, default: Any) -> click.Parameter:
    """The click option or argument for a parameter of a function."""
    kind, declaration = get_args(parameter.annotation)
    if NoneType in get_args(kind):
        kind = next(option for option in get_args(kind) if option is not NoneType)
    is_list = get_origin(kind) is list
    settings: dict[str, Any] = {"type": get_args(kind)[0] if is_list else kind, **declaration.settings}
    settings |= {"required": True} if default is Parameter.empty else {"default": default}
    if is_list:
        settings["callback"] = lambda _, __, value: list(value) or None  # None, the default of the function
    if declaration.flags is None:
        return click.Argument([parameter.name], nargs=-1 if is_list else 1, **settings)
    flags = [*declaration.flags]
    if not any(flag.startswith("--") for flag in flags):
        flags.append(f"--{parameter.name.replace('_', '-')}")
    if kind is bool:
        settings |= {"type": None, "is_flag": True}
    is_shown = kind is not bool and default not in (None, "", Parameter.empty)
    return click.Option([*flags, parameter.name], multiple=is_list, show_default=is_shown, **settings)
