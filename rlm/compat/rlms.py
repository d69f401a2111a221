"""Offer the interface of rlms: `RLM(backend=...)`, whose `completion` takes the context first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from rlm.compat.keywords import WithPeerKeywords, refuse
from rlm.errors import UnknownOption
from rlm.models.registry import choose, make_lm
from rlm.models.sampling import Sampling
from rlm.models.sdk import SDKOptions
from rlm.rlm import READ_ALL
from rlm.trajectory.completion import Completion

_ENVIRONMENTS = ("local", "subprocess", "wasm", "docker", "modal")


@dataclass(frozen=True, slots=True)
class RLMLogger:
    """`RLM(backend=..., logger=RLMLogger(log_dir="logs"))` writes one trajectory per run into that directory."""

    log_dir: str
    file_name: str = "rlm"
    """Accepted but unused: names of files begin with `rlm_`."""


class InShapeOfRlms(WithPeerKeywords, keywords=("backend",)):
    """The class that `RLM(backend=...)` makes. As in rlms, the first argument of `completion` is the context."""

    def __init__(
        self,
        backend: str = "openai",
        backend_kwargs: Mapping[str, Any] | None = None,
        environment: str | None = None,
        environment_kwargs: Mapping[str, Any] | None = None,
        *,
        other_backends: Sequence[str] | None = None,
        other_backend_kwargs: Sequence[Mapping[str, Any]] | None = None,
        logger: object = None,
        sampling_args: Sampling | None = None,
        **options: Any,
    ) -> None:
        """Translate the keywords of rlms.

        `backend_kwargs` may have `model_name`, `base_url`, `api_key`, `sampling_args` and options of the backend.
        `sampling_args` is our `sampling`. `environment` is the name of a runner. The first of `other_backends` is the
        model of sub-calls. `logger` is a directory, or an object with `log_dir`. Other keywords are those of `RLM`.

        Raises UnknownOption.
        """
        if environment not in (None, *_ENVIRONMENTS):
            raise UnknownOption(f"no environment {environment!r}; there are {', '.join(map(repr, _ENVIRONMENTS))}")
        place = dict(environment_kwargs or {})
        for name in ("cell_timeout", "output_limit"):
            if name in place:
                options.setdefault(name, place.pop(name))
        for name in place:
            refuse(name)
        if len(other_backends or ()) > 1:
            raise UnknownOption("other_backends may have one entry, the model of sub-calls, which is sub_lm here")
        if other_backends:
            options["sub_lm"] = _lm(other_backends[0], (other_backend_kwargs or ({},))[0])
        if logger is not None:
            target = logger if isinstance(logger, (str, os.PathLike)) else getattr(logger, "log_dir", None)
            if target is None:
                raise UnknownOption("this logger has no log_dir: use trajectory=, with a directory or a .jsonl file")
            options.setdefault("trajectory", target)
        if sampling_args is not None:
            options.setdefault("sampling", sampling_args)
        if "lm" not in options:
            options["lm"] = _lm(backend, backend_kwargs or {})
        super().__init__(runner=options.pop("runner", environment), **options)

    def completion(  # type: ignore[override]
        self, prompt: object = None, root_prompt: str | None = None, *, query: str | None = None, context: object = None
    ) -> Completion:
        """Answer `root_prompt` from the context `prompt`, by default the question in the context.

        `query` and `context` are our names for the two. Raises LLMError.
        """
        return super().completion(root_prompt or query or READ_ALL, prompt if context is None else context)

    async def acompletion(  # type: ignore[override]
        self, prompt: object = None, root_prompt: str | None = None, *, query: str | None = None, context: object = None
    ) -> Completion:
        """`completion`, without blocking the event loop."""
        return await super().acompletion(root_prompt or query or READ_ALL, prompt if context is None else context)


def _lm(backend: str, keywords: Mapping[str, Any]) -> Any:
    given = dict(keywords)
    model = given.pop("model_name", None) or given.pop("model", None) or "gpt-5"
    sampling = given.pop("sampling_args", None)
    known = (*get_type_hints(SDKOptions), "max_retries", "max_output_tokens")
    for name in given:
        if name not in known:
            raise UnknownOption(
                f"unknown key {name!r} in backend_kwargs; there are model_name, sampling_args, {', '.join(known)}"
            )
    return choose(lm=make_lm(backend, model, **given), sampling=sampling).root
