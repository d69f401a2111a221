"""Code written for rlms and rlm-minimal finds itself at home; a keyword that we lack names ours."""

from __future__ import annotations

import contextlib
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm import RLM, RLM_REPL, AnthropicLM, OpenAILM, RLMError, RunnerUnavailable, ScriptedLM, UnknownOption
from rlm.logger import RLMLogger
from rlm.options import RLMOptions
from rlm.prompts.examples import conversation


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


def theirs(endpoint: Any, **options: Any) -> RLM:
    kwargs = {"model_name": "gpt-5-nano", "api_key": "sk-secret-key", "base_url": endpoint.url}
    return RLM(backend="openai", backend_kwargs=kwargs, environment="local", **options)


def test_help_shows_our_own_keywords_and_no_others() -> None:
    shown = inspect.signature(RLM).parameters
    assert set(shown) == {"model", "sub_model", *RLMOptions.__annotations__}
    assert not {"backend", "environment", "max_cost"} & set(shown)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RLM(lm=ScriptedLM([]), cache_dr="x"), "unknown option 'cache_dr': did you mean cache_dir?"),
        (lambda: RLM(backend="openai", cache_dr="x"), "unknown option 'cache_dr': did you mean cache_dir?"),
        (lambda: RLM_REPL(lm=ScriptedLM([]), max_dept=2), "unknown option 'max_dept': did you mean max_depth?"),
        (lambda: OpenAILM("m", base_ur="x"), "unknown option 'base_ur': did you mean base_url?"),
        (lambda: AnthropicLM("m", api_ky="x"), "unknown option 'api_ky': did you mean api_key?"),
        (lambda: RLM.resume("x", None, zzz=1), "unknown option 'zzz': options are model, sub_model, lm, "),
    ],
)
def test_an_unknown_option_names_the_nearest(make: Any, said: str, tmp_path: Path, endpoint: Any) -> None:
    trajectory = tmp_path / "run.jsonl"
    RLM(lm=ScriptedLM(["FINAL(1)"]), trajectory=trajectory, runner="local").completion("q", "text")
    (tmp_path / "x").symlink_to(trajectory)
    with contextlib.chdir(tmp_path), pytest.raises(UnknownOption) as caught:
        make()
    assert str(caught.value).startswith(said)


def test_an_rlm_that_resumes_has_its_options() -> None:
    with pytest.raises(TypeError, match=r"to set max_calls, call RLM\.resume\(path, \.\.\.\) on the class"):
        RLM(lm=ScriptedLM([])).resume("run.jsonl", max_calls=3)


def test_max_cost_is_max_dollars() -> None:
    assert RLM(lm=ScriptedLM([]), max_cost=2).budget.dollars == 2
    assert RLM(lm=ScriptedLM([]), max_cost=2, max_dollars=1).budget.dollars == 1


@pytest.mark.slow
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
    assert 'original query: "What is it?"' in conversation(endpoint.requests[0]["messages"])[0]["content"]
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
    asked = [conversation(request["messages"])[0]["content"] for request in endpoint.requests]
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
        ({"nothing_like_it": 1}, "^unknown option 'nothing_like_it': options are model, sub_model, lm"),
    ],
)
def test_keywords_that_need_backend_beside_them(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UnknownOption, match=named):
        RLM(lm=ScriptedLM([]), **options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"environment": "daytona"}, "there are 'local', 'subprocess'"),
        ({"environment_kwargs": {"setup_code": "x"}}, "custom_tools"),
        ({"backend_kwargs": {"nonsense": 1}}, "model_name"),
        ({"other_backends": ["openai", "openai"]}, "sub_lm"),
        ({"logger": SimpleNamespace()}, "trajectory="),
        ({"backend": "vercel"}, "base_url="),
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


def test_the_modules_of_deeprecurse() -> None:
    import monocontext
    from rlm.monocontext import Monocontext
    from rlm.rlm_repl import RLM_REPL as TheirName

    assert TheirName is RLM_REPL
    assert Monocontext is monocontext.Monocontext


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


def test_the_repl_of_rlm_minimal() -> None:
    from rlm.repl import REPLEnv, REPLResult, Sub_RLM

    asked = ScriptedLM(lambda prompt: f"<{prompt}>")
    env = REPLEnv("gpt-5-nano", context_str="a text", setup_code="ready = [1]", lm=asked)
    done = env.code_execution("n = len(context)\nsaid = llm_query('q')\nprint(said)\nn + ready[0]")
    assert isinstance(done, REPLResult)
    assert (done.stdout, done.stderr) == ("<q>\n7\n", "")
    assert {name: done.locals[name] for name in ("n", "said", "ready", "context")} == {
        "n": 6, "said": "<q>", "ready": [1], "context": "a text",
    }  # fmt: skip
    env.globals["helper"] = str.upper
    assert env.code_execution("print(helper(context))").stdout == "A TEXT\n"
    assert "ZeroDivisionError" in env.code_execution("1 / 0").stderr
    assert done.execution_time is not None
    env.close()
    given = {"k": [1]}
    copied = REPLEnv(context_json=given, lm=asked)
    copied.code_execution("context['k'].append(2)")
    assert (given, copied.locals["context"]) == ({"k": [1]}, {"k": [1, 2]})
    copied.close()
    assert Sub_RLM(lm=asked).completion("p") == "<p>"
    assert Sub_RLM(lm=asked).completion([{"role": "user", "content": "m"}]) == "<m>"


def test_the_prompts_of_rlm_minimal() -> None:
    from rlm.utils.prompts import (
        DEFAULT_QUERY,
        REPL_SYSTEM_PROMPT,
        USER_PROMPT,
        build_system_prompt,
        next_action_prompt,
    )

    assert build_system_prompt() == [{"role": "system", "content": REPL_SYSTEM_PROMPT}]
    assert "llm_query" in REPL_SYSTEM_PROMPT
    assert "context" in DEFAULT_QUERY
    assert next_action_prompt("Who?")["content"].endswith(USER_PROMPT.format(query="Who?"))
    assert len(next_action_prompt("Who?", 1)["content"]) < len(next_action_prompt("Who?")["content"])
    assert "Who?" not in next_action_prompt("Who?", 3, final_answer=True)["content"]
