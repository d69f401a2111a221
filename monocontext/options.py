"""Type the options that functions pass on, and refuse unknown ones by the name of the nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    from inspect import Signature

Function = TypeVar("Function", bound=Callable[..., Any])


class ReachOptions(TypedDict, total=False):
    """How to reach an S3 server. An option that is None counts as not given."""

    endpoint: str | None
    """URL of a server other than AWS; without it `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL` count."""
    profile: str | None
    """A profile of the AWS configuration."""
    path_style: bool | None
    """The bucket in the path instead of the host; by default where an endpoint is given."""
    anonymous: bool | None
    """Sign nothing."""


class StoreOptions(ReachOptions, total=False):
    """Options of `open_store`, for `s3://` alone."""

    region: str | None
    """As in the AWS configuration; `us-east-1` where an endpoint is given and nothing is configured."""
    transport: Literal["own", "boto3"] | None
    """The transport of GETs; boto3 sends everything else."""
    keep_alive: bool | None
    """`False` leaves no connection of our own transport open between two calls."""
    client: Any
    """A ready boto3 client, taken as it is; excludes the others."""


def validate_options(*options: type, error: type[TypeError] = TypeError) -> Callable[[Function], Function]:
    """Decorate a function: an unknown keyword is an error of one line that names the nearest keyword.

    `options`: the TypedDicts of the function's `**options`, whose keys its signature then shows as keywords.
    """

    def decorate(function: Function) -> Function:
        code = function.__code__
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        more = [name for kind in options for name in kind.__annotations__]
        known = [name for name in (*own, *more) if name not in ("self", "cls")]
        names = frozenset(known)

        @wraps(function)
        def checked(*arguments: Any, **given: Any) -> Any:
            for name in given:
                if name not in names:
                    near = nearest(name, known) or f": options are {', '.join(known)}"
                    raise error(f"unknown option {name!r}{near}")
            return function(*arguments, **given)

        vars(checked)["__wrapped__"] = _Shown(function, options)
        return cast(Function, checked)

    return decorate


class _Shown:
    """What `inspect` finds behind a function with options: its signature is made when somebody looks, since the import
    of `inspect` takes 5 ms."""

    def __init__(self, function: Callable[..., Any], options: tuple[type, ...]) -> None:
        self.__wrapped__ = function
        self._options = options

    @property
    def __signature__(self) -> Signature:
        from inspect import Parameter, signature

        shown = signature(self.__wrapped__)
        own = [each for each in shown.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        more = {name: note for kind in self._options for name, note in kind.__annotations__.items()}
        keywords = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=getattr(note, "__forward_arg__", note))
            for name, note in more.items()
        ]
        return shown.replace(parameters=[*own, *keywords])

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__wrapped__(*arguments, **options)


def check_int(name: str, value: object, least: int, most: int | None = None) -> int:
    """The value of an option that counts something. Raises `TypeError` for what is no whole number, `ValueError` for
    one out of bounds: one line that names the option."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    number = index(value)
    if most is not None and not least <= number <= most:
        raise ValueError(f"{name} is between {least:,} and {most:,}, not {number}")
    if number < least:
        raise ValueError(f"{name} is at least {least}, not {number}")
    return number


def check_seconds(name: str, value: object) -> None:
    """Raise as `check_int` does unless an option is a number of seconds, 0 or more, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, SupportsFloat)):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if value is not None and not float(value) >= 0:
        raise ValueError(f"{name} is at least 0, not {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """`: did you mean prefetch?`, or nothing where no name is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""
