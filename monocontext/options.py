"""Define the option types that several functions share, and check the names and values of options."""

# No `from __future__ import annotations`: a TypedDict compiles annotations that are strings, 1.5 ms of an import.

from collections.abc import Callable, Iterable
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    from inspect import Signature

Function = TypeVar("Function", bound=Callable[..., Any])


class ReachOptions(TypedDict, total=False):
    """Options for connecting to an S3 server. `None` is the same as leaving an option out."""

    endpoint: str | None
    """The URL of a server other than AWS; by default `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`."""
    profile: str | None
    """A profile of the AWS configuration."""
    path_style: bool | None
    """Whether URLs name the bucket in the path, not in the host; by default for all servers but AWS."""
    anonymous: bool | None
    """Whether to send unsigned requests."""


class StoreOptions(ReachOptions, total=False):
    """The options of `open_store`; those that this class adds are for `s3://` only."""

    region: str | None
    """The region of the bucket; by default that of the AWS configuration, or else `us-east-1`."""
    transport: Literal["own", "boto3", None]
    """Which client sends GETs: our own (the default) or boto3. Boto3 sends all other requests."""
    keep_alive: bool | None
    """`False` closes the connections of our own transport after each call."""
    client: Any
    """A boto3 client to send all requests with. No other option may be given with it."""


def validate_options(*options: type, error: type[TypeError] = TypeError) -> Callable[[Function], Function]:
    """A decorator that raises `error` for a keyword that a function does not take, and suggests a similar one.

    `options` are the TypedDicts of the function's `**options`. Their keys become keywords in the function's signature.
    """

    def decorate(function: Function) -> Function:
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        keys = [key for option_class in options for key in option_class.__annotations__]
        known = [name for name in (*parameters, *keys) if name not in ("self", "cls")]
        names = frozenset(known)

        @wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in names:
                    hint = suggestion(name, known) or f": options are {', '.join(known)}"
                    raise error(f"unknown option {name!r}{hint}")
            return function(*arguments, **keywords)

        vars(checked)["__wrapped__"] = _WithOptions(function, options)
        return cast(Function, checked)

    return decorate


class _WithOptions:
    """The `__wrapped__` of a decorated function: its signature has the keys of `options` as keywords.

    The signature is computed on demand, since `inspect` takes 5 ms to import.
    """

    def __init__(self, function: Callable[..., Any], options: tuple[type, ...]) -> None:
        self.__wrapped__ = function
        self._options = options

    @property
    def __signature__(self) -> "Signature":
        from inspect import Parameter, formatannotation, signature

        result = signature(self.__wrapped__)
        own = [parameter for parameter in result.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        types = {name: hint for options in self._options for name, hint in options.__annotations__.items()}
        keywords = [
            Parameter(
                name, Parameter.KEYWORD_ONLY, default=...,
                annotation=getattr(hint, "__forward_arg__", None) or formatannotation(hint),
            )
            for name, hint in types.items()
        ]  # fmt: skip
        return result.replace(parameters=[*own, *keywords])

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__wrapped__(*arguments, **options)


def check_int(name: str, value: object, minimum: int, maximum: int | None = None) -> int:
    """The value of an option as an int. Raises `TypeError` for another type, `ValueError` if it is out of bounds."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be an int, not {value!r}")
    number = index(value)
    if maximum is not None and not minimum <= number <= maximum:
        raise ValueError(f"{name} must be between {minimum:,} and {maximum:,}, not {number}")
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {number}")
    return number


def check_seconds(name: str, value: object) -> None:
    """Raise `TypeError` or `ValueError` unless an option is `None` or a number of seconds that is at least 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not float(value) >= 0:
        raise ValueError(f"{name} must be at least 0, not {value}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error message, such as `: did you mean prefetch?`; empty if no known name is similar."""
    from difflib import get_close_matches

    similar = get_close_matches(name, list(known), 1)
    return f": did you mean {similar[0]}?" if similar else ""
