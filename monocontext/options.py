"""Types of the options that functions pass on, and checks of the names and values of options."""

# No `from __future__ import annotations`: a TypedDict compiles annotations that are strings, 1.5 ms of an import.

from collections.abc import Callable, Iterable
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    from inspect import Signature

Function = TypeVar("Function", bound=Callable[..., Any])


class ReachOptions(TypedDict, total=False):
    """Options for the connection to an S3 server. An option that is `None` counts as not given."""

    endpoint: str | None
    """The URL of a server other than AWS; by default `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`."""
    profile: str | None
    """A profile of the AWS configuration."""
    path_style: bool | None
    """Whether the bucket is in the path instead of the host; by default if an endpoint is given."""
    anonymous: bool | None
    """Whether to send unsigned requests."""


class StoreOptions(ReachOptions, total=False):
    """The options of `open_store`. Those of this class are for `s3://` only."""

    region: str | None
    """By default the region of the AWS configuration, or `us-east-1` if there is none and an endpoint is given."""
    transport: Literal["own", "boto3", None]
    """The client that sends GETs. Boto3 sends all other requests."""
    keep_alive: bool | None
    """`False` closes the connections of our own transport after each call."""
    client: Any
    """A boto3 client to use instead of all other options."""


def validate_options(*options: type, error: type[TypeError] = TypeError) -> Callable[[Function], Function]:
    """Decorate a function: an unknown keyword raises `error`, whose message names the nearest keyword.

    `options` are the TypedDicts of the function's `**options`. Their keys become keywords in the function's signature.
    """

    def decorate(function: Function) -> Function:
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        keys = [key for kind in options for key in kind.__annotations__]
        known = [name for name in (*parameters, *keys) if name not in ("self", "cls")]
        names = frozenset(known)

        @wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in names:
                    hint = nearest(name, known) or f": options are {', '.join(known)}"
                    raise error(f"unknown option {name!r}{hint}")
            return function(*arguments, **keywords)

        vars(checked)["__wrapped__"] = _WithOptions(function, options)
        return cast(Function, checked)

    return decorate


class _WithOptions:
    """The function that `inspect` finds behind a decorated one: its signature has the keys of `options` as keywords.

    The signature is made when it is needed, since `inspect` takes 5 ms to import.
    """

    def __init__(self, function: Callable[..., Any], options: tuple[type, ...]) -> None:
        self.__wrapped__ = function
        self._options = options

    @property
    def __signature__(self) -> "Signature":
        from inspect import Parameter, formatannotation, signature

        result = signature(self.__wrapped__)
        own = [parameter for parameter in result.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        types = {name: item for kind in self._options for name, item in kind.__annotations__.items()}
        keywords = [
            Parameter(
                name, Parameter.KEYWORD_ONLY, default=...,
                annotation=getattr(item, "__forward_arg__", None) or formatannotation(item),
            )
            for name, item in types.items()
        ]  # fmt: skip
        return result.replace(parameters=[*own, *keywords])

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
    """Raise `TypeError` or `ValueError` unless an option is `None` or a number of seconds of at least 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not float(value) >= 0:
        raise ValueError(f"{name} must be at least 0, not {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message, such as `: did you mean prefetch?`; empty if no known name is similar."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""
