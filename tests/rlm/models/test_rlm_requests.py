"""Options of requests, seen on the wire: from Python, for root and sub-calls, by chat completions and Responses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import ASK
from rlm_replies import repl as code

from rlm import RLM, AnthropicLM, LLMError, OpenAILM, ScriptedLM, UnknownOption
from rlm.models import responses
from rlm.models.registry import choose, split_provider
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.sdk_options import client_options


def test_options_of_openai_are_on_the_wire(endpoint: Any) -> None:
    lm = OpenAILM(
        "m", base_url=endpoint.url, api_key="k", temperature=0, reasoning_effort="low", max_completion_tokens=9,
        extra_body={"top_k": 5}, headers={"X-Team": "blue"}, timeout=3,
    )  # fmt: skip
    lm.complete(ASK)
    body = endpoint.requests[0]
    assert (body["temperature"], body["reasoning_effort"], body["max_completion_tokens"], body["top_k"]) == (
        0, "low", 9, 5,
    )  # fmt: skip
    assert endpoint.seen[0]["x-team"] == "blue"
    assert "top_p" not in body


def test_options_of_anthropic_are_on_the_wire_by_its_names(anthropic_endpoint: Any) -> None:
    lm = AnthropicLM(
        "m", base_url=anthropic_endpoint.url, api_key="k", temperature=0.5, reasoning_effort="low",
        max_completion_tokens=9, extra_body={"top_k": 5}, headers={"X-Team": "blue"},
    )  # fmt: skip
    lm.complete(ASK)
    body = anthropic_endpoint.requests[0]
    assert (body["temperature"], body["output_config"], body["max_tokens"], body["top_k"]) == (
        0.5, {"effort": "low"}, 9, 5,
    )  # fmt: skip
    assert anthropic_endpoint.seen[0]["x-team"] == "blue"


def test_sampling_of_root_and_of_sub_calls(endpoint: Any) -> None:
    endpoint.reply = lambda body: code("FINAL(llm_query('x'))") if len(body["messages"]) > 1 else "yes"
    for options, sent in [
        ({"sampling": {"temperature": 0}}, [0, 0]),
        ({"sampling": {"temperature": 0}, "sub_sampling": {"temperature": 1}}, [0, 1]),
        ({"sub_sampling": {"seed": 7}}, [None, None]),
    ]:
        endpoint.requests.clear()
        with RLM("big", "small", base_url=endpoint.url, api_key="k", **options) as rlm:  # type: ignore[arg-type]
            assert rlm.completion("q", "text").answer == "yes"
        assert [(body["model"], body["stream"]) for body in endpoint.requests] == [("big", True), ("small", True)]
        assert [body.get("temperature") for body in endpoint.requests] == sent
    assert [body.get("seed") for body in endpoint.requests] == [None, 7]
    given = OpenAILM("m", base_url=endpoint.url, api_key="k", temperature=1)
    RLM(lm=given, sampling={"temperature": 0}, headers=None).completion("q", "text")
    assert endpoint.requests[-1]["temperature"] == 0
    assert given.sampling == {"temperature": 1}  # the caller's own stays as it is


@pytest.mark.parametrize(
    ("options", "told"),
    [({"model": "x"}, "the run sets 'model' itself"),
     ({"temperature": math.nan}, "temperature=nan is not JSON"), ({"stop": object()}, "cannot be sent"),
     ({"stop": ["\ud83d"]}, "cannot be sent")],
)  # fmt: skip
def test_options_that_cannot_be_sent_are_one_line(endpoint: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UnknownOption, match=told):
        RLM("m", base_url=endpoint.url, api_key="k", sampling=options)
    with pytest.raises(UnknownOption, match="does not accept request options: leave out"):
        RLM(lm=ScriptedLM([]), sampling={"temperature": 0})
    assert endpoint.requests == []


USED = {
    "input_tokens": 11, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 18,
}  # fmt: skip


def test_a_model_that_wants_the_responses_api_is_asked_there(endpoint: Any) -> None:
    endpoint.usage = USED
    refusal = (404, "This model is only supported in v1/responses and not in v1/chat/completions.")
    endpoint.reply = lambda body: refusal if "messages" in body else "hello"
    options: Any = {"reasoning_effort": "low", "max_completion_tokens": 9, "extra_body": {"reasoning": None}}
    lm, pieces = OpenAILM("pro", base_url=endpoint.url, api_key="k", **options), list[str]()
    for _ in range(2):
        reply = lm.complete(ASK, on_delta=pieces.append)
        assert (reply.text, reply.input_tokens, reply.output_tokens) == ("hello", 11, 7)
        assert (reply.details.cache_read, reply.details.reasoning) == (4, 3)
    assert endpoint.paths == ["/v1/chat/completions", "/v1/responses", "/v1/responses"]
    body = endpoint.requests[-1]
    fields = [body[name] for name in ("input", "store", "reasoning", "max_output_tokens")]
    assert fields == [ASK, False, {"effort": "low"}, 9]
    assert pieces == ["hel", "lo"] * 2


def test_makers_in_names() -> None:
    assert split_provider("anthropic:claude-x") == ("anthropic", "claude-x")
    assert split_provider("openai:ft:gpt-5:mine") == ("openai", "ft:gpt-5:mine")
    for name in ("gpt-5", "qwen2.5:7b", "ft:gpt-5", "llama3:", ":x"):
        assert split_provider(name) == (None, name)
    both = choose("anthropic:claude-x", "openai:gpt-y", api_key="k")
    assert (type(both.root), type(both.sub), both.sub_model) == (AnthropicLM, OpenAILM, None)
    assert (both.sub.model, both.sub.secrets) == ("gpt-y", ())  # type: ignore[attr-defined]  # a key is for one provider
    same = choose("anthropic:claude-x", "anthropic:claude-y")
    assert (same.sub, same.sub_model) == (same.root, "claude-y")


def test_a_resumed_run_asks_the_sub_model_at_its_endpoint(
    endpoint: Any, anthropic_endpoint: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-ant")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/vendor")
    path = tmp_path / "run.jsonl"
    models = choose(
        "anthropic:claude-x", "openai:gpt-y", base_url=anthropic_endpoint.url, sub_base_url=endpoint.url
    )  # fmt: skip
    anthropic_endpoint.reply = lambda body: (400, "not yet")
    with (
        pytest.raises(LLMError, match="not yet"),
        RLM(lm=models.root, sub_lm=models.sub, sub_model=models.sub_model, trajectory=path) as rlm,
    ):
        rlm.completion("q", "text")
    anthropic_endpoint.reply = lambda body: code("FINAL(llm_query('x'))")
    completion = RLM.resume_run(path)
    assert completion.answer == "hello"
    assert set(completion.usage.models) == {"claude-x", "gpt-y"}
    assert endpoint.keys == ["Bearer sk-of-openai"]


def test_the_values_of_headers_are_in_no_record_and_no_message(endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda body: (400, "do not send token-of-the-team here")
    path = tmp_path / "run.jsonl"
    with (
        pytest.raises(LLMError, match=r"do not send \[secret\] here"),
        RLM("m", base_url=endpoint.url, api_key="k", headers={"X-Key": "token-of-the-team"}, trajectory=path) as rlm,
    ):
        rlm.completion("say token-of-the-team", "text")
    assert "token-of-the-team" not in path.read_text()


def test_windows_and_prompts_of_small_models() -> None:
    def told(lm: Any, **options: Any) -> tuple[int, int, int]:
        setup = RLM(lm=lm, **options)._setup
        return setup.window_tokens, setup.prompt_characters, setup.output_limit

    assert told(OpenAILM("m", window_tokens=8_192)) == (8_192, 16_384, 8_192)
    assert told(OpenAILM("m"), window_tokens=8_192) == (8_192, 16_384, 8_192)
    assert told(OpenAILM("m"), window_tokens=8_192, prompt_characters=7_000, output_limit=5) == (8_192, 7_000, 5)
    assert told(OpenAILM("m"), sub_lm=OpenAILM("n", window_tokens=4_096)) == (128_000, 8_192, 20_000)


def lm_at(endpoint: Any, **options: Any) -> OpenAILM:
    options = {"api_key": "sk-secret-key", **options}
    return OpenAILM("m", base_url=endpoint.url, **options)


def test_an_error_of_the_listener_is_its_own(endpoint: Any) -> None:
    def broken(delta: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lm_at(endpoint).complete(ASK, on_delta=broken)


def test_a_local_endpoint_needs_no_key(endpoint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    lm = lm_at(endpoint, api_key=None)
    assert lm.complete(ASK).text == "hello"
    assert lm.secrets == ()


def test_the_end_after_the_end_of_a_response_keeps_its_usage() -> None:
    builder = ReplyBuilder()
    for event in (
        {"type": "response.completed", "response": {"usage": {"input_tokens": 11}}},
        {"type": "response.done"},
    ):
        responses.read_event(event, builder)
    assert responses.count_usage(builder.usage, builder.tier, None).input_tokens == 11
    assert client_options({"timeout": 0})["timeout"] == 0  # and not the default
