"""Options that a model sends with each request: temperature, effort, and whatever else its maker knows."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypedDict

from rlm.errors import UnknownOption

Sampling = Mapping[str, Any]
"""Name -> value, as in the body of a request. The maker of the model knows the names: it refuses unknown ones."""


class SamplingOptions(TypedDict, total=False):
    """Options that most makers know."""

    temperature: float | None
    top_p: float | None
    reasoning_effort: str | None
    """How much a model thinks, such as `low`."""
    max_completion_tokens: int | None
    """The most tokens of a reply, thinking included."""


_OURS = frozenset(("model", "messages", "input", "stream", "system"))
"""Fields that the backend itself writes."""


class Sampled:
    """A model with options for each of its requests."""

    sampling: Sampling
    """The options, by the names of `SamplingOptions` or of the maker."""

    names: ClassVar[Mapping[str, str]] = {}
    """The maker's name for an option of `SamplingOptions`; a dot leads into an object."""

    def with_sampling(self, options: Sampling) -> Self:
        """This model, with the same connections, whose requests have these options in addition; None removes one."""
        other = copy.copy(self)
        other._set_sampling({**self.sampling, **options})
        return other

    @staticmethod
    def check_body(options: Sampling) -> Sampling:
        """Return `options`. Raises UnknownOption for a field that is ours, or a value that is no JSON."""
        for name, value in options.items():
            if name in _OURS:
                raise UnknownOption(f"{name!r} cannot be set in sampling options: the run sets it itself")
            try:
                json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
            except (TypeError, ValueError) as exc:
                raise UnknownOption(f"the option {name}={value!r} cannot be sent: {exc}") from None
        return options

    def _set_sampling(self, options: Sampling) -> None:
        self.sampling = dict(self.check_body({name: option for name, option in options.items() if option is not None}))

    def _fields(self) -> dict[str, Any]:
        """The options as fields of a request."""
        fields: dict[str, Any] = {}
        for name, value in self.sampling.items():
            outer, _, inner = self.names.get(name, name).partition(".")
            fields[outer] = {**fields.get(outer, {}), inner: value} if inner else value
        return fields
