"""Code written for rlms and rlm-minimal finds itself at home; a keyword that we lack names ours."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm import RLM, RLM_REPL, RLMError, RunnerUnavailable, ScriptedLM, UnknownOption
from rlm.logger import RLMLogger


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


def theirs(endpoint: Any, **options: Any) -> RLM:
    kwargs = {"model_name": "gpt-5-nano", "api_key": "sk-secret-key", "base_url": endpoint.url}
    return RLM(backend="openai", backend_kwargs=kwargs, environment="local", **options)


def test_help_shows_our_own_keywords() -> None:
    assert {"model", "lm", "runner", "max_dollars"} <= set(inspect.signature(RLM).parameters)


def test_the_example_of_rlms(endpoint: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> str:
        return repl("FINAL(twice(context) + llm_query('hi'))") if len(body["messages"]) > 1 else "sub"

    endpoint.reply = reply
    rlm = theirs(
        endpoint, environment_kwargs={}, max_depth=1, max_iterations=5, verbose=True,
        logger=RLMLogger(log_dir=str(tmp_path / "logs")),
        custom_tools={"twice": {"tool": lambda text: text * 2, "description": "Doubles."}},
    )  # fmt: skip
    assert isinstance(rlm, RLM)
    result = rlm.completion("the context ", root_prompt="What is it?")
    assert result.response == result.answer == "the context the context sub"
    assert result.usage_summary.to_dict()["model_usage_summaries"]["gpt-5-nano"]["total_calls"] == 2
    assert result.execution_time > 0
    assert result.root_model == "gpt-5-nano"
    assert 'original query: "What is it?"' in endpoint.requests[0]["messages"][1]["content"]
    assert "turn 1" in capsys.readouterr().err
    assert len(list((tmp_path / "logs").glob("rlm_*.jsonl"))) == 1


def test_the_first_argument_is_the_context_in_every_spelling(endpoint: Any) -> None:
    endpoint.reply = lambda body: repl("FINAL(str(context) + '.')")
    rlm = theirs(endpoint)
    for completion in (
        rlm.completion("text"), rlm.completion("text", "question"), rlm.completion(prompt="text"),
        rlm.completion(prompt="text", root_prompt="question"), rlm.completion(query="question", context="text"),
    ):  # fmt: skip
        assert completion.answer == "text."
    assert rlm.completion(["a", {"b": 1}]).answer == "['a', {'b': 1}]."
    asked = [request["messages"][1]["content"] for request in endpoint.requests]
    assert ["question" in text.split("Your context")[0] for text in asked] == [False, True, False, True, True, False]
    assert "read through the context and answer any queries" in asked[0]


def test_other_backends_answer_sub_calls(endpoint: Any) -> None:
    endpoint.reply = lambda body: repl("FINAL(llm_query('x'))") if len(body["messages"]) > 1 else body["model"]
    kwargs = {"model_name": "small", "api_key": "k", "base_url": endpoint.url}
    rlm = theirs(endpoint, other_backends=["openai"], other_backend_kwargs=[kwargs])
    assert rlm.completion("text").answer == "small"


def test_persistent_rlms(endpoint: Any) -> None:
    endpoint.reply = lambda body: repl("n = globals().get('n', 0) + 1; FINAL(n)")
    with theirs(endpoint, persistent=True) as rlm:
        assert [rlm.completion("text", "q").answer for _ in range(3)] == ["1", "2", "3"]


@pytest.mark.parametrize("environment", ["docker", "modal", "subprocess"])
def test_environments_are_runners(environment: str) -> None:
    try:
        rlm = RLM(backend="openai", environment=environment)
    except RunnerUnavailable as exc:
        assert environment in str(exc)  # noqa: PT017 - where it works, it is made
    else:
        assert environment in repr(rlm)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_budget": 1.0}, "max_dollars"),
        ({"max_timeout": 60}, "max_seconds"),
        ({"max_errors": 3}, "max_retries"),
        ({"custom_system_prompt": "x"}, "question"),
        ({"custom_sub_tools": {}}, "custom_tools"),
        ({"on_iteration_complete": print}, "on_step"),
        ({"compaction_threshold_pct": 0.5}, "window_tokens"),
        ({"max_iteration": 3}, "max_iterations"),
        ({"depth": 1}, "max_depth"),
    ],
)
def test_a_keyword_that_we_lack_raises_an_error_that_names_ours(options: dict[str, Any], named: str) -> None:
    for shape in ({"lm": ScriptedLM([])}, {"backend": "openai"}):
        with pytest.raises(UnknownOption, match=named) as caught:
            RLM(**shape, **options)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, RLMError)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"environment": "local"}, "runner"),
        ({"backend_kwargs": {}}, "model, base_url and api_key"),
        ({"logger": object()}, "trajectory"),
        ({"nothing_like_it": 1}, "no keyword 'nothing_like_it'"),
    ],
)
def test_keywords_that_need_backend_beside_them(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UnknownOption, match=named):
        RLM(lm=ScriptedLM([]), **options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"environment": "daytona"}, "runner="),
        ({"environment_kwargs": {"setup_code": "x"}}, "custom_tools"),
        ({"backend_kwargs": {"temperature": 1}}, "model_name"),
        ({"other_backends": ["openai", "openai"]}, "sub_lm"),
        ({"logger": SimpleNamespace()}, "trajectory="),
        ({"backend": "portkey"}, "base_url="),
        ({"backend": "nonsense"}, "'anthropic'"),
    ],
)
def test_what_their_shape_cannot_do_here(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UnknownOption, match=named):
        RLM(**{"backend": "openai", **options})


def test_rlm_repl_with_context_obj() -> None:
    lm = ScriptedLM(lambda messages: repl("FINAL(context + '.')"))
    assert RLM_REPL(lm=lm).completion("a", "q") == "a."
    assert RLM_REPL(lm=lm).completion(query="q", context_obj="b") == "b."
    assert RLM_REPL(lm=lm, context_obj="c").completion(query="q") == "c."
    assert RLM_REPL(lm=lm, context_obj="c").completion("d", "q") == "d."
