"""Types of the options that functions pass on, and checks of their names and values."""

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
    """The URL of a server other than AWS; by default `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`."""
    profile: str | None
    """A profile of the AWS configuration."""
    path_style: bool | None
    """Whether the bucket is in the path instead of the host; by default if an endpoint is given."""
    anonymous: bool | None
    """Whether to send unsigned requests."""


class StoreOptions(ReachOptions, total=False):
    """Options of `open_store`, for `s3://` alone."""

    region: str | None
    """By default that of the AWS configuration, or `us-east-1` if an endpoint is given and none is configured."""
    transport: Literal["own", "boto3"] | None
    """The client that sends GETs. Boto3 sends all other requests."""
    keep_alive: bool | None
    """`False` closes the connections of our own transport after each call."""
    client: Any
    """A ready boto3 client, used as it is. It excludes the other options."""


def validate_options(*options: type, error: type[TypeError] = TypeError) -> Callable[[Function], Function]:
    """Decorate a function: an unknown keyword raises `error`, whose message names the nearest keyword.

    `options` are the TypedDicts of the function's `**options`. Its signature shows their keys as keywords.
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
    """What `inspect` finds as the wrapped function. Its signature is made at the first use, since `inspect` takes 5 ms
    to import."""

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
    """The value of an option as an int. Raises `TypeError` for another type, `ValueError` if it is out of bounds."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be an int, not {value!r}")
    number = index(value)
    if most is not None and not least <= number <= most:
        raise ValueError(f"{name} must be between {least:,} and {most:,}, not {number}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number


def check_seconds(name: str, value: object) -> None:
    """Raise as `check_int` does unless an option is None or a number of seconds of at least 0."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, SupportsFloat)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if value is not None and not float(value) >= 0:
        raise ValueError(f"{name} must be at least 0, not {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message, such as `: did you mean prefetch?`, or an empty string if no name is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""
