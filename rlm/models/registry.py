"""Choose the models of a run, and make a model by the names of its backend and itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm.context.excerpt import bounded_repr
from rlm.errors import UnknownOption
from rlm.models import any_llm
from rlm.models.anthropic import AnthropicLM
from rlm.models.claude_agent import ClaudeAgentLM
from rlm.models.openai import PROVIDERS, OpenAILM

if TYPE_CHECKING:
    from rlm.models.lm import LM
    from rlm.models.sdk_options import Sampling

PRESETS: Mapping[str, tuple[str, str]] = {
    "openai": ("gpt-5.6", "gpt-5.4-mini"),
    "anthropic": ("claude-sonnet-5-5", "claude-haiku-5-5"),
}
"""Backend -> its default root model, and a cheaper model for sub-calls."""

BACKENDS = ("openai", "anthropic", "claude-agent")
_ANY_LLM_PROVIDERS = frozenset((
    "azure", "azureanthropic", "azureopenai", "bedrock", "databricks", "sagemaker", "vertexai", "vertexaianthropic",
    "watsonx",
))  # fmt: skip
"""Providers that are recognised before any-llm, through which they are asked, is installed."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a run, for its root and its sub-calls."""

    root: LM
    sub: LM  # for sub-calls; often the same object
    sub_model: str | None  # the model to ask `sub` for; None for its default
    made: tuple[LM, ...]  # the models that `choose` made, whose connections the caller must close


def choose(
    model: str | None = None, sub_model: str | None = None, *, backend: str | None = None, preset: str | None = None,
    lm: LM | None = None, sub_lm: LM | None = None, sampling: Sampling | None = None,
    sub_sampling: Sampling | None = None, sub_base_url: str | None = None, **connection: Any,
) -> Models:  # fmt: skip
    """The models of a run, given as objects or names: `gpt-5.6`, or `anthropic:claude-opus-5-5` with its provider.

    - `model`, `sub_model`: names, of the root and of sub-calls; by default those of `PRESETS`
    - `backend`: the provider of the root; without it, `model` may name one
    - `preset`: a key of `PRESETS`: the provider of the root, and its models for those that are not named
    - `lm`, `sub_lm`: objects in place of the names; `lm` also takes the place of `backend` and `connection`
    - `sampling`, `sub_sampling`: options of the requests
    - `sub_base_url`: the endpoint of a sub-model of another provider
    - `connection`: `base_url`, `api_key`, `headers` and further options of `make_lm` for the root

    Sub-calls go to the root's object with its sampling, unless there is a `sub_lm`, `sub_sampling`, or a sub-model of
    another provider. Raises UnknownOption, and TypeError for an object in place of a name or the reverse.
    """
    _check_types(model, sub_model, lm, sub_lm)
    provider, name = root_names(model, backend, preset)
    made: list[LM] = []
    default, cheaper = PRESETS.get("anthropic" if provider == "claude-agent" else provider, ("", None))
    if lm is not None:
        root, provider = lm, str(getattr(lm, "backend", provider))
    elif name or default or not is_known(provider):
        root = make_lm(provider, name or default, **connection)
        made.append(root)
    else:
        raise UnknownOption(f"{provider!r} has no default model: name one, as in '{provider}:NAME'")
    root = _sampled(root, sampling, "sampling")
    sub_provider, sub_name = split_provider(sub_model) if sub_model else (None, None)
    if sub_lm is not None:
        sub, sub_name = sub_lm, sub_model
    elif sub_name and sub_provider and sub_provider != provider:
        sub = make_lm(sub_provider, sub_name, base_url=sub_base_url)
        made.append(sub)
        sub_name = None  # it is the default of `sub`
    else:
        sub = root
        if not sub_name and (preset or (name is None and lm is None)):
            sub_name = cheaper  # sub-calls are most of the cost
    return Models(root, _sampled(sub, sub_sampling, "sub_sampling"), sub_name, tuple(made))


def root_names(model: str | None, backend: str | None, preset: str | None) -> tuple[str, str | None]:
    """The provider of the root model, and the model's name there, which is None for the default. The provider is
    `backend`, else the one that `model` names, else `preset`, else OpenAI. Raises UnknownOption."""
    if preset and preset not in PRESETS:
        raise UnknownOption(f"no preset {preset!r}: choose from {', '.join(map(repr, PRESETS))}")
    named = split_provider(model)[0] if model else None
    provider = backend or named or preset or "openai"
    if preset and preset != provider:
        raise UnknownOption(f"preset {preset!r} and provider {provider!r} exclude each other: leave one out")
    if not model:
        return provider, None
    # A local server may have models such as `mistral:7b`, whose first word is a provider too.
    return provider, model.removeprefix(f"{provider}:") or model


def _check_types(model: object, sub_model: object, lm: object, sub_lm: object) -> None:
    """Raise TypeError for an object in place of a name, or a name in place of an object."""
    for prefix, name, value in (("", model, lm), ("sub_", sub_model, sub_lm)):
        if not isinstance(name, str | None):
            raise TypeError(f"{prefix}model must be a name, not {bounded_repr(name)}: pass {prefix}lm=")
        if value is not None and (isinstance(value, type) or not callable(getattr(value, "complete", None))):
            raise TypeError(f"{prefix}lm must be an object with complete(messages), not {bounded_repr(value)}")


def _sampled(lm: LM, options: Sampling | None, keyword: str) -> LM:
    """The model with these options. Raises UnknownOption, which names `keyword`, if the model takes no options."""
    if not options:
        return lm
    with_sampling: Callable[[Sampling], LM] | None = getattr(lm, "with_sampling", None)
    if with_sampling is None:
        raise UnknownOption(f"{type(lm).__name__} does not accept request options: leave out {keyword}=")
    return with_sampling(options)


def make_lm(backend: str, model: str, **options: Any) -> LM:
    """Make a model by the name of its backend, whose SDK is imported at the first call. Options that are None are
    ignored. Raises UnknownOption for an unknown backend, and for an option that the backend does not take."""
    arguments = {name: value for name, value in options.items() if value is not None}
    if backend in ("openai", *PROVIDERS):
        return OpenAILM(model, provider=backend if backend in PROVIDERS else None, **arguments)
    if backend == "anthropic":
        return AnthropicLM(model, **arguments)
    if backend == "claude-agent":
        if arguments:
            raise UnknownOption(f"backend {backend!r} uses the login of Claude Code: leave out {', '.join(arguments)}")
        return ClaudeAgentLM(model)
    if any_llm.knows(backend):
        return any_llm.AnyLM(backend, model, **arguments)
    if backend in _ANY_LLM_PROVIDERS:
        raise UnknownOption(f"backend {backend!r} needs packages that are missing: {any_llm.install_command(backend)}")
    names, command = ", ".join(map(repr, (*BACKENDS, *PROVIDERS))), any_llm.install_command("NAME")
    raise UnknownOption(f"no backend {backend!r}: choose from {names}, or install a provider of any-llm: {command}")


def split_provider(model: str) -> tuple[str | None, str]:
    """Backend and model in a name such as `anthropic:claude-opus-5-5`; None and the name if it has no backend."""
    provider, _, name = model.partition(":")
    has_backend = name and provider.replace("-", "_").isidentifier() and is_known(provider)
    return (provider, name) if has_backend else (None, model)


def is_known(backend: str) -> bool:
    """Whether `make_lm` has this backend."""
    return backend in {*BACKENDS, *PROVIDERS, *_ANY_LLM_PROVIDERS} or any_llm.knows(backend)
