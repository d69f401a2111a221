"""Calls written for rlms, rlm-minimal and DeepRecurse run as they are written."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, RLM_REPL, OpenAILM, RunnerUnavailable, ScriptedLM, UnknownOption


def test_each_keyword_is_in_the_signature_and_in_the_docstring() -> None:
    shown = inspect.signature(RLM).parameters
    assert all(keyword.kind is not keyword.VAR_KEYWORD for keyword in shown.values())
    documented = inspect.getdoc(RLM.__init__) or ""
    assert [name for name in shown if f"`{name}`" not in documented] == []


def test_the_call_of_the_note() -> None:
    try:
        rlm = RLM(environment="docker", backend="openai", backend_kwargs={"model_name": "gpt-4o-mini"})
    except RunnerUnavailable as exc:
        assert "docker" in str(exc)  # noqa: PT017 - where docker works, it is made
    else:
        assert repr(rlm) == "<RLM gpt-4o-mini, runner docker, at most 30 turns>"


def test_options_of_a_backend_reach_the_model(endpoint: Any) -> None:
    endpoint.reply = lambda body: repl("FINAL(context + body)".replace("body", repr(body["model"])))
    options = {"model_name": "gpt-5-nano", "api_key": "sk-secret-key", "base_url": endpoint.url}
    assert repr(RLM("m", backend_kwargs=options)).startswith("<RLM gpt-5-nano,")
    with RLM(backend="openai", backend_kwargs=options, environment="local") as rlm:
        assert rlm.completion("q", "text ").answer == "text gpt-5-nano"


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [(lambda: RLM(lm=ScriptedLM([]), cache_dr="x"), TypeError, "cache_dr"),
     (lambda: RLM_REPL(lm=ScriptedLM([]), max_dept=2), TypeError, "max_dept"),
     (lambda: OpenAILM("m", base_ur="x"), UnknownOption, "no option base_ur: choose from .*base_url"),
     (lambda: RLM(backend="openai", backend_kwargs={"nonsense": 1}), UnknownOption, "no option nonsense"),
     (lambda: RLM("m", api_key="k", backend_kwargs={"nonsense": 1}), UnknownOption, "no option nonsense"),
     (lambda: RLM(lm=ScriptedLM([]), backend_kwargs={"model_name": "m"}), UnknownOption, "set these options on lm"),
     (lambda: RLM(backend="nonsense"), UnknownOption, "'anthropic'"),
     (lambda: RLM(backend="openai", environment="daytona"), RunnerUnavailable, "no runner 'daytona'")],
)  # fmt: skip
def test_an_unknown_option_is_an_error(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


def test_rlm_repl_with_context_obj() -> None:
    lm = ScriptedLM(lambda messages: repl("FINAL(context + '.')"))
    assert RLM_REPL(lm=lm).completion("a", "q") == "a."
    assert RLM_REPL(lm=lm).completion(query="q", context_obj="b") == "b."
    assert RLM_REPL(lm=lm, context_obj="c").completion(query="q") == "c."
    assert RLM_REPL(lm=lm, context_obj="c").completion("d", "q") == "d."


class TranscriptRLM(RLM_REPL):
    """As DeepRecurse makes its own: more names for the cells, and words before the question."""

    def setup_context(self, context: object, query: str | None = None) -> list[dict[str, str]]:
        messages = super().setup_context(context, query)
        self.repl_env.globals["list_sessions"] = lambda: ["s1", "s2"]
        messages[0]["content"] = "You have list_sessions().\n\n" + messages[0]["content"]
        return messages


@pytest.mark.parametrize("runner", ["subprocess", "local"])
def test_a_subclass_adds_names_and_words(runner: str) -> None:
    lm = ScriptedLM([repl("print(list_sessions())"), repl("FINAL(f'{context}: {list_sessions()}')"), "FINAL(plain)"])
    rlm = TranscriptRLM(lm=lm, runner=runner)
    assert rlm.completion(context="text", query="Which sessions?") == "text: ['s1', 's2']"
    first = "\n".join(message["content"] for message in lm.calls[0])
    assert "You have list_sessions().\n\nWhich sessions?" in first
    assert rlm.cost_summary()["model_usage_summaries"]["scripted"]["total_calls"] == 2
    rlm.reset()
    assert (rlm.messages, rlm.repl_env.globals, rlm.query) == ([], {}, None)
