"""What endpoints send, what must come out of it, and the public report that describes such bytes or their kin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.errors import LLMError, PromptTooLong, RateLimited, ReplyRefused

EVENTS, JSON, HTML = "text/event-stream", "application/json", "text/html; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """What the endpoint sends."""

    body: bytes
    kind: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    torn: bool = False
    """The connection breaks behind the body."""


Sent = Answer | Callable[[dict[str, Any]], Answer]


@dataclass(frozen=True)
class Out:
    """What must come out: a reply, or an error with these words."""

    text: str = "hello"
    thinking: str = ""
    cut: bool = False
    called: str = ""
    arguments: str = ""
    notes: tuple[str, ...] = ()
    """Words of each note."""
    error: type[LLMError] | None = None
    words: str = ""
    again: bool = False
    """A call that fails so is worth another try."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further attributes of the error."""


@dataclass(frozen=True)
class Row:
    """A quirk."""

    name: str
    source: str
    out: Out
    streamed: Sent | None = None
    whole: Sent | None = None
    api: str = "chat"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the request."""


def events(*values: Any, done: bool = True, end: str = "\n", named: bool = False) -> Answer:
    """A stream of these values; a text is a line as it stands, a pair an event with its name."""
    lines: list[str] = []
    for value in values:
        if isinstance(value, str):
            lines.append(value)
        else:
            name = f"event: {value['type']}{end}" if named else ""
            lines.append(f"{name}data: {json.dumps(value)}")
    lines += ["data: [DONE]"] if done else []
    return Answer("".join(line + end * 2 for line in lines).encode("utf-8", "surrogatepass"), EVENTS)


def body(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(json.dumps(value).encode(), JSON, status, {k.replace("_", "-"): v for k, v in headers.items()})


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def choice(finish: Any = None, **fields: Any) -> dict[str, Any]:
    return {"id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "finish_reason": finish, **fields}]}  # fmt: skip


def delta(finish: Any = None, **fields: Any) -> dict[str, Any]:
    return choice(finish, delta=fields)


def message(finish: Any = "stop", /, **fields: Any) -> Answer:
    message = {"role": "assistant", "content": None, **fields}
    choices = [{"index": 0, "finish_reason": finish, "message": message}]
    return body({"id": "1", "object": "chat.completion", "model": "m", "choices": choices, "usage": USAGE})


HEL, LO, STOP = delta(content="hel"), delta(content="lo"), delta("stop")
ROWS: list[Row] = []


def chat(
    name: str, source: str, out: Out, *, streamed: Sent | None = None, whole: Sent | None = None, **more: Any
) -> None:
    ROWS.append(Row(name, source, out, streamed, whole, "chat", more))


def both(name: str, source: str, out: Out, **fields: Any) -> None:
    """The fields of a message, in one chunk and whole."""
    finish = fields.pop("finish", "stop")
    chat(name, source, out, streamed=events(delta(**fields), delta(finish)), whole=message(finish, **fields))


def refuses(
    name: str, words: str, *, status: int = 400, instead: str | None = None, **error: Any
) -> Callable[[dict[str, Any]], Answer]:
    """An endpoint that takes no field of this name."""

    def answer(request: dict[str, Any]) -> Answer:
        if name in request:
            return body({"error": {"message": words, **error}}, status)
        if instead is not None and instead not in request:
            return body({"error": {"message": f"{instead} is missing"}}, 400)
        return events(HEL, LO, STOP) if request.get("stream") else message(content="hello")

    return answer


def fails(words: str, error: type[LLMError] = LLMError, *, again: bool = False, **more: Any) -> Out:
    return Out(error=error, words=words, again=again, more=more)


# A row a line.
# fmt: off

# --- text and thinking ---

chat("a plain reply", "the document of the API", Out(), streamed=events(HEL, LO, STOP), whole=message(content="hello"))
both("null content with thinking", "vllm-project/vllm#17357", Out("", "hm"), content=None, reasoning_content="hm")
both("`reasoning_content` and text", "vllm-project/vllm#17609", Out("hello", "hm"), content="hello", reasoning_content="hm")
both("`reasoning` and text", "sgl-project/sglang#28042", Out("hello", "hm"), content="hello", reasoning="hm")
both("one thinking by two names", "OpenRouter: reasoning and reasoning_details", Out("hello", "hm"), content="hello", reasoning="hm", reasoning_details=[{"type": "reasoning.text", "text": "hm"}])
both("`reasoning_details` alone", "OpenRouter: summaries", Out("hello", "hm"), content="hello", reasoning_details=[{"type": "reasoning.summary", "summary": "hm"}, {"type": "reasoning.encrypted", "data": "x"}])
both("`reasoning` as an object", "any-llm: Reasoning", Out("hello", "hm"), content="hello", reasoning={"content": "hm"})
both("content as a list of parts", "BerriAI/litellm#16272", Out(), content=[{"type": "text", "text": "hello"}])
both("a list with parts of thinking", "simonw/llm-mistral#39", Out("hello", "hm"), content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hello"}])
both("a field without text before the thinking", "kin of vercel/ai#8072", Out("hello", "hm"), content=[{"type": "thinking", "thinking": True, "text": "hm"}, {"type": "text", "text": "hello"}])
both("thinking as plain text in a part", "vercel/ai#8072", Out("hello", "hm"), content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hello"}])
both("a list of plain texts", "kin of litellm#16272", Out(), content=["hel", "lo"])
both("one part in place of a list", "kin of litellm#16272", Out(), content={"type": "text", "text": "hello"})
both("text within an object", "assistants API: text.value", Out(), content=[{"type": "text", "text": {"value": "hello"}}])
both("parts that are no text", "Mistral: references", Out(), content=[{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "hello"}, None, 7, {"type": "image"}])
chat("a pair of surrogates in two pieces", "aider-AI/aider#3693", Out("a\U0001f600"), streamed=events("data: " + json.dumps(delta(content="a\ud83d")), "data: " + json.dumps(delta(content="\ude00")), STOP))
chat("bytes that are no UTF-8", "kin of aider#3693", Out("a\ufffdb"), streamed=Answer(b'data: {"choices":[{"delta":{"content":"a\xffb"},"finish_reason":"stop"}]}\n\n', EVENTS))

# --- shapes --------------------------------------------------------------------------------------------------------

chat("`delta: null`", "microsoft/agent-framework#5734", Out(), streamed=events(choice(delta=None), HEL, LO, STOP))
chat("a delta that is a text", "microsoft/autogen#7711", Out(), streamed=events(choice(delta="hello"), STOP))
chat("`choices: null`", "essex-toolkit#387", Out(), streamed=events({"choices": None}, HEL, LO, STOP))
chat("`choices: []` first, as Azure sends", "Azure: prompt_filter_results", Out(), streamed=events({"choices": [], "prompt_filter_results": [{}]}, HEL, LO, STOP))
chat("a choice that is null", "kin of essex-toolkit#387", Out(), streamed=events({"choices": [None]}, HEL, LO, STOP))
chat("`message: null`", "BerriAI/litellm#40864", Out(""), whole=body({"choices": [{"message": None, "finish_reason": "stop"}], "usage": USAGE}))
chat("`choices: null`, whole", "langchain-ai/langchainjs#11417", fails("the answer has no `choices`"), whole=body({"id": "1", "choices": None}))
chat("a JSON text in place of an object", "kin of langchainjs#11417", fails("has no `choices` (is base_url right?): oops"), whole=body("oops"))
chat("legacy `text`", "completions API", Out(), streamed=events(choice(text="hel"), choice("stop", text="lo")), whole=body({"choices": [{"text": "hello", "finish_reason": "stop"}]}))
chat("the whole message again in the last chunk", "kin", Out(), streamed=events(HEL, LO, choice("stop", delta={}, message={"content": "hello"})))
chat("two choices", "n=2", Out(), streamed=events(HEL, {"choices": [{"index": 1, "delta": {"content": "other"}}]}, LO, STOP))
chat("comments and pings", "OpenRouter: comments", Out(), streamed=events(": OPENROUTER PROCESSING", HEL, ": ping", "event: ping\ndata: {}", LO, STOP))
chat("lines that end in CR LF", "OpenRouter", Out(), streamed=events(HEL, LO, STOP, end="\r\n"))
chat("lines that end in CR", "the standard of events", Out(), streamed=events(HEL, LO, STOP, end="\r"))
chat("no space behind the colon", "the standard of events", Out(), streamed=Answer(events(HEL, LO, STOP).body.replace(b"data: ", b"data:"), EVENTS))
chat("fields id and retry", "the standard of events", Out(), streamed=events("id: 1\nretry: 10\ndata: " + json.dumps(HEL), LO, STOP))
chat("data in two lines", "the standard of events", Out(), streamed=events('data: {"choices": [{"delta":\ndata: {"content": "hello"}}]}', STOP))
chat("a BOM before the stream", "kin", Out(), streamed=Answer(b"\xef\xbb\xbf" + events(HEL, LO, STOP).body, EVENTS))
chat("events of unknown names", "OpenRouter", Out(), streamed=events('event: status\ndata: {"step": 1}', HEL, LO, STOP))
chat("empty data, null, numbers", "kin", Out(), streamed=events("data:", "data: null", "data: 5", HEL, LO, STOP))
chat("usage in a last chunk", "stream_options", Out(), streamed=events(HEL, LO, STOP, {"choices": [], "usage": USAGE}))
chat("no empty line at the end", "kin", Out(), streamed=Answer(events(HEL, LO, STOP, done=False).body.rstrip(), EVENTS))
chat("a stream under the type text/plain", "proxies", Out(), streamed=Answer(events(HEL, LO, STOP).body, "text/plain"))
chat("JSON in answer to a stream", "proxies that do not stream", Out(), streamed=message(content="hello"))
chat("a stream in answer to a plain request", "proxies that always stream", Out(), whole=events(HEL, LO, STOP))
chat("white space before the JSON", "keep-alive of proxies", Out(), whole=Answer(b"\n \n" + message(content="hello").body))

# --- ends ----------------------------------------------------------------------------------------------------------

both("`length`", "PrimeIntellect-ai/verifiers#1768", Out("hello", cut=True), content="hello", finish="length")
both("`end_turn` of xAI", "genkit-ai/genkit#6259", Out(), content="hello", finish="end_turn")
both("`content_filter`", "wippyai/framework#115", fails("a filter held the answer back", ReplyRefused, reason="content_filter"), content="hel", finish="content_filter")
both("`PROHIBITED_CONTENT` of Gemini", "BerriAI/litellm#20357", fails("PROHIBITED_CONTENT", ReplyRefused, reason="content_filter"), content=None, finish="content_filter: PROHIBITED_CONTENT")
both("`sensitive` of z.ai", "anomalyco/opencode#44092", fails("sensitive", ReplyRefused, reason="content_filter"), content="h", finish="sensitive")
chat("`promptFeedback` of Gemini", "simonw/llm-gemini#80", fails("PROHIBITED_CONTENT", ReplyRefused, reason="content_filter"), whole=body({"choices": None, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}))
both("a refusal", "genkit-ai/genkit#6259", fails("the model refused: I cannot", ReplyRefused, reason="refusal"), content=None, refusal="I cannot")
both("a refusal as a part", "structured outputs", fails("I cannot", ReplyRefused, reason="refusal"), content=[{"type": "refusal", "refusal": "I cannot"}])
both("an empty refusal", "kin", Out(), content="hello", refusal="")
both("tool calls in place of text", "verifiers#1768", Out("", called="python", arguments='{"code": "x"}'), content=None, finish="tool_calls", tool_calls=[{"index": 0, "id": "1", "type": "function", "function": {"name": "python", "arguments": '{"code": "x"}'}}])
chat("a tool call in pieces, before another one", "kin of verifiers#1768", Out("", called="python", arguments='{"code": 1}'), streamed=events(delta(tool_calls=[{"index": 0, "function": {"name": "python", "arguments": '{"co'}}]), delta(tool_calls=[{"index": 0, "function": {"arguments": 'de": 1}'}}]), delta(tool_calls=[{"index": 1, "function": {"name": "other", "arguments": "{}"}}]), delta("tool_calls")))
both("a legacy function call", "functions API", Out("", called="python", arguments="{}"), content=None, finish="function_call", function_call={"name": "python", "arguments": "{}"})
both("tool calls by the reason alone, behind words", "kin of verifiers#1768", Out(called="unnamed"), content="hello", finish="tool_calls")
for _name in ("max_new_tokens", "limit", "time_limit", "context_exceeded", "REASON_MAX_LEN", "model_context_window_exceeded"):
    both(f"the reason `{_name}`", "kin of verifiers#1768", Out(cut=True), content="hello", finish=_name)
for _name in ("ERROR_TOXIC", "MODEL_ARMOR", "guardrail_intervened", "content_filtered"):
    both(f"the reason `{_name}`", "Cohere, Google, Bedrock", fails("held the answer back", ReplyRefused, reason="content_filter"), content="hello", finish=_name)
for _name in ("null", "not_finished", "FINISH_REASON_UNSPECIFIED"):
    chat(f"`{_name}` while a reply goes on, and then a break", "DashScope, watsonx", fails("ended in the middle", again=True), streamed=events(delta(_name, content="hel"), done=False))
for _name in ("timeout", "interrupted", "repetition"):
    both(f"the reason `{_name}`", "kin", fails(f"broke off ({_name})", again=True), content="hello", finish=_name)
for _field, _name, _out in (("finishReason", "MAX_TOKENS", Out(cut=True)), ("finishReason", "STOP", Out()),
                            ("finishReason", "MaxTokens", Out(cut=True)), ("finish_reason", "max-tokens", Out(cut=True)),
                            ("finishReason", "contentFilter", fails("held the answer back", ReplyRefused)),
                            ("stopReason", "MAX_TOKENS", Out(cut=True)), ("stop_reason", "length", Out(cut=True)),
                            ("finishReason", "OTHER", fails("broke off (OTHER)", again=True)),
                            ("finishReason", "SAFETY", fails("held the answer back (SAFETY)", ReplyRefused, reason="content_filter"))):  # fmt: skip
    _choice = {"index": 0, "finish_reason": None, _field: _name}
    chat(f"`{_field}: {_name}`", "akdeb/llmcord#84", _out, streamed=events(HEL, {"choices": [{**_choice, "delta": {"content": "lo"}}]}, done=False), whole=body({"choices": [{**_choice, "message": {"content": "hello"}}]}))
chat("one token without end", "anthropics/claude-code#82803", Out(" la" * 2_700, cut=True, notes=("only repeated itself",)), streamed=events(*[delta(content=" la" * 300)] * 100, STOP))
chat("an index that is a text", "kin", Out(), streamed=events(choice("stop", index="0", delta={"content": "hello"})))
both("an empty list of tool calls", "vllm: tool_calls []", Out(), content="hello", tool_calls=[])
chat("no reason, but [DONE] (Ollama)", "ollama/ollama#4357", Out(), streamed=events(HEL, LO))
chat("empty texts as reasons, and [DONE]", "ollama/ollama#4357", Out(), streamed=events(delta("", content="hel"), delta("", content="lo")))
chat("a reason, and no [DONE]", "kin of pydantic-ai#6610", Out(), streamed=events(HEL, LO, STOP, done=False))
chat("neither reason nor [DONE]", "pydantic/pydantic-ai#6610", fails("the stream ended in the middle", again=True), streamed=events(HEL, done=False))
chat("neither reason nor [DONE], after a chunk of usage", "earendil-works/pi#8460", fails("ended in the middle", again=True), streamed=events(HEL, {"choices": [], "usage": USAGE}, done=False))
chat("a connection that breaks", "report 14", fails("the connection broke off", again=True), streamed=Answer(events(HEL, done=False).body, EVENTS, torn=True), whole=Answer(b"{", torn=True))
chat("a connection that breaks after the reason", "kin of report 14", Out(), streamed=Answer(events(HEL, LO, STOP, done=False).body, EVENTS, torn=True))
chat("half an event", "oh-my-pi#8563", fails("not JSON", again=True), streamed=Answer(events(HEL).body[:40], EVENTS))
chat("`error` as a reason", "gethouston/houston#1211", fails("broke off (error)", again=True), streamed=events(HEL, delta("error")))
both("`insufficient_system_resource` of DeepSeek", "genkit-ai/genkit#6259", fails("broke off", again=True), content="h", finish="insufficient_system_resource")
both("`abort` of vLLM", "vLLM: finish reasons", fails("broke off", again=True), content="h", finish="abort")


chat("`message` in the chunks, for `delta`", "kin of agent-framework#5734", Out(), streamed=events(choice(message={"content": "hel"}), choice(message={"content": "lo"}), choice("stop", message={})))
chat("`message` in the chunks, each the whole so far", "kin of agent-framework#5734", Out(), streamed=events(choice(message={"content": "hel"}), choice("stop", message={"content": "hello"})))
chat("a last `delta` that repeats the reply", "kin of agent-framework#5734", Out("twenty characters here"), streamed=events(delta(content="twenty "), delta(content="characters here"), delta("stop", content="twenty characters here")))
_PASSAGE = "".join(map(str, range(1_000)))[:1_500]
_QUOTED = f"b{_PASSAGE}{'c' * 5_000}{_PASSAGE}"
chat("a passage that is quoted twice", "ours", Out(_QUOTED), streamed=events(delta(content=_QUOTED), STOP))
chat("thinking that Google marks", "Gemini: include_thoughts", Out(thinking="hm"), streamed=events(delta(content="hm", extra_content={"google": {"thought": True}}), HEL, LO, STOP), whole=message(content=[{"type": "text", "text": "hm", "thought": True}, {"type": "text", "text": "hello"}]))
chat("a limit that a router calls `stop`", "OpenRouter: native_finish_reason", Out(cut=True), streamed=events(HEL, LO, choice("stop", delta={}, native_finish_reason="MAX_TOKENS")))


def error(name: str, source: str, out: Out, value: Any) -> None:
    """An error as a body with status 200, and behind the first chunk of a stream."""
    chat(name, source, out, streamed=events(HEL, value), whole=body(value))


error("an error in status 200", "langchain-ai/langchainjs#11417", fails("no such thing"), {"error": {"message": "no such thing", "code": 400}})
error("429 in status 200", "UKGovernmentBEIS/inspect_ai#1534", fails("slow down", RateLimited, again=True), {"error": {"message": "slow down", "code": 429}})
chat("Retry-After of an error in status 200", "kin of inspect_ai#1534", fails("slow", RateLimited, again=True, retry_after_seconds=4.0), streamed=Answer(events(HEL, {"error": {"message": "slow", "code": 429}}).body, EVENTS, headers={"retry-after": "4"}), whole=body({"error": {"message": "slow", "code": 429}}, retry_after="4"))
error("429 as a text, in status 200", "kin of inspect_ai#1534", fails("slow down", RateLimited, again=True), {"error": {"message": "slow down", "code": "429"}})
error("`rate_limit_exceeded`", "openai: codes", fails("slow down", RateLimited, again=True), {"error": {"message": "slow down", "code": "rate_limit_exceeded", "type": "requests"}})
error("502 in status 200", "OpenJarvis#970", fails("bad gateway", again=True), {"error": {"message": "bad gateway", "code": 502}})
error("words of the provider behind a router", "OpenRouter: metadata.raw", fails("Provider returned error: overloaded", RateLimited, again=True), {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": '{"error": {"message": "overloaded"}}', "provider_name": "P"}}})
error("an error next to a choice", "damianvtran/local-operator#223", fails("gone", again=True), {"error": {"code": "server_error", "message": "gone"}, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]})
error("an error within the choice", "genkit-ai/genkit#6259", fails("gone", again=True), {"choices": [{"index": 0, "error": {"code": 502, "message": "gone"}, "finish_reason": "error"}]})
error("an error that is a text", "huggingface_hub#2558", fails("Model is overloaded", again=True), {"error": "Model is overloaded"})
error("a rate limit that is a text", "huggingface_hub#2558", fails("Rate limit reached", RateLimited, again=True), {"error": "Rate limit reached"})
error("a rate limit of MiniMax", "MiniMax: base_resp", fails("rate limit", RateLimited, again=True), {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}})
error("an error of Anthropic", "Anthropic: overloaded_error", fails("Overloaded", again=True), {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
error("an error of vLLM", "vLLM: ErrorResponse", fails("no such model"), {"object": "error", "message": "no such model", "type": "BadRequestError", "param": None, "code": 400})
error("a list with an error (Gemini)", "guidellm#743", fails("quota", RateLimited, again=True), [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}])
error("`base_resp` of MiniMax", "MiniMax: base_resp", fails("not enough"), {"base_resp": {"status_code": 1008, "status_msg": "not enough"}})
error("`detail` of FastAPI", "FastAPI", fails("Not Found"), {"detail": "Not Found"})
error("`success: false`", "apache/rocketmq-dashboard#2178", fails("down"), {"success": False, "msg": "down", "code": 1})
error("an error beside an empty list of choices", "kin of OpenJarvis#970", fails("quota"), {"id": "1", "choices": [], "message": "quota is spent"})
error("an error with a capital", "kin of langchainjs#11417", fails("slow", RateLimited, again=True), {"Error": {"Message": "slow", "Code": "Throttling"}})
error("an error with the id of a reply", "Qianfan: error_code", fails("bad"), {"id": "1", "error_code": 336003, "error_msg": "bad"})
error("an error as JSON in a text", "kin of huggingface_hub#2558", fails("slow", RateLimited, again=True), {"error": '{"message": "slow", "code": 429}'})
error("an error that is a number", "kin of inspect_ai#1534", fails("slow", RateLimited, again=True), {"error": 429, "message": "slow"})
error("`statusCode`", "Mistral", fails("down", again=True), {"statusCode": 503, "message": "down"})
chat("a remark that is no error", "kin", Out(), streamed=events({**HEL, "code": 0, "message": "ok"}, LO, STOP, {"id": "1", "choices": [], "code": 0, "message": "ok"}))
error("a wait that is told in words", "Groq, Azure, Gemini", fails("7.5s", RateLimited, again=True, retry_after_seconds=7.5), {"error": {"message": "Please try again in 7.5s.", "code": "rate_limit_exceeded"}})
error("a wait in milliseconds, in words", "openai", fails("500ms", RateLimited, again=True, retry_after_seconds=0.5), {"error": {"message": "Please try again in 500ms.", "code": "rate_limit_exceeded"}})
_FIELD = 'error: {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}'
chat("a field `error`, as llama.cpp sent it", "ggml-org/llama.cpp#14566", fails("Context size", PromptTooLong), streamed=events(HEL, _FIELD))
for _name, _line, _words in (
    ("`event: error` with `{}`", "event: error\ndata: {}", "an error without a message"),
    ("`event: error` with words", "event: error\ndata: fell over", "fell over"),
    ("`event: error` alone", "event: error", "without a message"),
    ("a line of JSON", '{"error": {"message": "fell over", "code": 500}}', "fell over"),
    ("JSON in several lines", '{\n  "error": {\n    "message": "fell over"\n  }\n}', "fell over"),
    ("a web page", "<html><head><title>502 Bad Gateway</title></head>\n<body>x</body></html>", "502 Bad Gateway"),
    ("words of a proxy", "upstream connect error or disconnect/reset before headers", "upstream connect error"),
):
    chat(f"{_name} within a stream", "kin of llama.cpp#14566", fails(_words, again=True), streamed=events(HEL, _line))
for _name, _seconds in (("1m2s", 62.0), ("in 7m12.48s", 432.48), ("in 2 minutes", 120.0), ("in 1h2m3s", 3723.0)):
    error(f"a wait of {_name}, in words", "openai-dotnet#838", fails("try", RateLimited, again=True, retry_after_seconds=_seconds), {"error": {"message": f"Please try again in {_name.removeprefix('in ')}.", "code": "rate_limit_exceeded"}})
error("headers of a provider in a router's error", "OpenRouter: error.metadata.headers", fails("free", RateLimited, again=True, retry_after_seconds=9.0), {"error": {"code": 429, "message": "free limit", "metadata": {"headers": {"Retry-After": "9"}}}})
error("Google's RetryInfo", "crmne/ruby_llm#850", fails("quota", RateLimited, again=True, retry_after_seconds=34.5), {"error": {"code": 429, "message": "quota", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}})
chat("an event named error", "LM Studio", fails("fell over", again=True), streamed=events(HEL, 'event: error\ndata: {"message": "fell over", "code": 500}'))
chat("a web page", "base_url without /v1", fails("received a web page instead of an answer: 'Welcome to nginx!'"), streamed=Answer(b"<!doctype html><html><head><title>Welcome to nginx!</title></head><body>x</body></html>", HTML), whole=Answer(b"\n<html><body><h1>Welcome</h1><title>Welcome to nginx!</title></body></html>", HTML))
chat("a text", "Ollama at /", fails("not JSON: 'Ollama is running'"), streamed=Answer(b"Ollama is running", "text/plain"), whole=Answer(b"Ollama is running", "text/plain"))
chat("nothing", "kin", fails("/v1", again=True), streamed=Answer(b"", EVENTS), whole=Answer(b""))
chat("half a JSON", "kin", fails("ended in the middle", again=True), whole=Answer(message(content="hello").body[:60]))


def status(name: str, source: str, out: Out, value: Any, code: int = 400, **headers: str) -> None:
    chat(name, source, out, streamed=body(value, code, **headers), whole=body(value, code, **headers))


status("429 with Retry-After", "openai", fails("slow", RateLimited, again=True, retry_after_seconds=4.0), {"error": {"message": "slow"}}, 429, retry_after="4")
for _headers, _seconds in (
    ({"x_ratelimit_reset_requests": "6m0s"}, 360.0),
    ({"x_ratelimit_reset_requests": "7.66s", "x_ratelimit_reset_tokens": "12ms"}, 7.66),
    ({"x_ratelimit_reset_requests": "1h", "x_ratelimit_remaining_requests": "9", "x_ratelimit_reset_tokens": "2s", "x_ratelimit_remaining_tokens": "0"}, 2.0),
    ({"retry_after": "30s"}, 30.0),
    ({"retry_after": "2", "x_ratelimit_reset_requests": "6m0s"}, 2.0),
):
    status(f"429 with {', '.join(_headers).replace('_', '-')} {_seconds}", "vectorize-io/hindsight#3508", fails("slow", RateLimited, again=True, retry_after_seconds=_seconds), {"error": {"message": "slow"}}, 429, **_headers)
status("`ThrottlingException` with 400", "AWS", fails("Rate exceeded", RateLimited, again=True), {"__type": "ThrottlingException", "message": "Rate exceeded"})
status("a spent quota", "openai: insufficient_quota", fails("quota"), {"error": {"message": "quota", "code": "insufficient_quota"}}, 429)
status("400 with the word upstream", "report 22", fails("upstream provider: bad image"), {"error": {"message": "upstream provider: bad image"}})
status("a filter of Azure", "Azure: ResponsibleAIPolicyViolation", fails("filtered", ReplyRefused, reason="content_filter"), {"error": {"message": "The prompt was filtered", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}})
status("404 without a word of a model", "base_url without /v1", fails("no API at"), {"detail": "Not Found"}, 404)
chat("502 with a web page", "Cloudflare", fails("Bad gateway", again=True), streamed=Answer(b"<html><title>Bad gateway</title></html>", HTML, 502), whole=Answer(b"<html><title>Bad gateway</title></html>", HTML, 502))

TOO_LONG = [
    ("OpenAI", "chathub-dev/chathub#126", 4294, 4097, "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens.", {"code": "context_length_exceeded"}, 400),
    ("vLLM", "earendil-works/pi#5929", 262145, 262144, "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens.", {"code": 400}, 400),
    ("llama.cpp", "ggml-org/llama.cpp#15780", 1407, 256, "the request exceeds the available context size. try increasing it", {"code": 500, "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}, 500),
    ("Anthropic, by a router", "earendil-works/pi#129", 208310, 200000, "prompt is too long: 208310 tokens > 200000 maximum", {}, 400),
    ("Gemini", "earendil-works/pi#129", 1200000, 1048576, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", {"code": 400}, 400),
    ("Bedrock", "jin-bo/agentao#88", None, None, "Input is too long for requested model.", {}, 400),
    ("LM Studio", "lmstudio-ai/lmstudio-bug-tracker#237", 15857, 4096, "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", {}, 400),
    ("Groq, 413", "LibreChat-AI/agents#330", 8000, 6000, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size", {"code": "rate_limit_exceeded", "type": "tokens"}, 413),
    ("OpenAI, 429", "LibreChat-AI/agents#330", 50000, 30000, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 50000. The input or output tokens must be reduced", {"code": "rate_limit_exceeded"}, 429),
    ("Alibaba", "anomalyco/opencode#45834", None, 30720, "Range of input length should be [1, 30720]", {}, 400),
    ("Mistral", "earendil-works/pi#129", 40000, 32768, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", {"code": "3051"}, 400),
    ("Poolside", "earendil-works/pi#4943", 131393, 131040, "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", {}, 422),
]
for maker, source, tokens, window, words, more, code in TOO_LONG:
    out = fails("", PromptTooLong, tokens=tokens, window_tokens=window)
    status(f"too long a prompt: {maker}", source, out, {"error": {"message": words, **more}}, code)
error("too long a prompt, in status 200", "LibreChat-AI/agents#330", fails("", PromptTooLong, tokens=9000, window_tokens=8192), {"error": {"message": "request (9000 tokens) exceeds the available context size (8192 tokens)", "code": 400}})


def refused(name: str, source: str, note: str, answer: Sent, **options: Any) -> None:
    chat(name, source, Out(notes=(note,)), streamed=answer, whole=answer, **options)


refused("`temperature` of gpt-5", "decolua/9router#560", "refuses temperature: left out", refuses("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.", param="temperature", code="unsupported_value"), temperature=0)
refused("`temperature` of Claude, by a router", "ecosystem 4", "refuses temperature", refuses("temperature", "`temperature` is deprecated for this model."), temperature=0)
refused("`top_p` with `temperature`", "Anthropic", "refuses top_p", refuses("top_p", "`top_p` and `temperature` cannot both be specified for this model."), temperature=0, top_p=0.5)
refused("`max_tokens`, but `max_completion_tokens`", "teilomillet/gollm#33", "refuses max_tokens: sent as max_completion_tokens", refuses("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", param="max_tokens", instead="max_completion_tokens"), max_tokens=9)
refused("`max_completion_tokens`, but `max_tokens`", "Mistral: extra_forbidden", "refuses max_completion_tokens: sent as max_tokens", refuses("max_completion_tokens", "Extra inputs are not permitted", status=422, param="max_completion_tokens", instead="max_tokens"), max_completion_tokens=9)
refused("`reasoning_effort`", "openai: unsupported_parameter", "refuses reasoning_effort", refuses("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"), reasoning_effort="low")
refused("a validator's `loc`", "vLLM, FastAPI", "refuses temperature", lambda request: (body({"detail": [{"loc": ["body", "temperature"], "msg": "extra fields not permitted"}]}, 422) if "temperature" in request else events(HEL, LO, STOP) if request.get("stream") else message(content="hello")), temperature=0)
chat("`stream_options`", "azure: stream_options", Out(notes=("refuses stream_options",)), streamed=refuses("stream_options", "Unrecognized request argument supplied: stream_options"))
chat("an organisation that may not stream", "openai: verify to stream", Out(notes=("refuses stream: left out",)), streamed=refuses("stream", "Your organization must be verified to stream this model.", param="stream", code="unsupported_value"))
chat("a model that does not stream", "o1-pro", Out(notes=("refuses stream: left out",)), streamed=refuses("stream", "This model does not support streaming."))
chat("a value out of range", "the caller's own", fails("temperature must be between 0 and 2"), temperature=9, whole=refuses("temperature", "temperature must be between 0 and 2", param="temperature"))

# --- the Responses API ---------------------------------------------------------------------------------------------

USED = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}


def part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def item(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": list(parts)}


def response(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"id": "r", "object": "response", "status": status, "output": list(output), "usage": USED, "error": None, **more}


def end(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.{value['status']}", "response": value}


def responses(name: str, source: str, out: Out, value: dict[str, Any], *before: dict[str, Any]) -> None:
    ROWS.append(Row(name, source, out, events(*before, end(value), done=False, named=True), body(value), "responses"))


def text_delta(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "delta": text, "item_id": "m"}


responses("a plain reply", "the document of the API", Out(), response(item(part("hello"))), {"type": "response.created", "response": {}}, text_delta("hel"), text_delta("lo"))
responses("text only at the end", "proxies", Out(), response(item(part("hello"))))
responses("text with thinking", "openai: reasoning summaries", Out("hello", "hm"), response({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, item(part("hello"))), {"type": "response.reasoning_summary_text.delta", "delta": "hm"}, text_delta("hello"))
responses("`incomplete`: tokens", "report 4", Out("hel", cut=True), response(item(part("hel")), status="incomplete", incomplete_details={"reason": "max_output_tokens"}), text_delta("hel"))
responses("`incomplete` without details", "kin", Out("hel", cut=True), response(item(part("hel")), status="incomplete"))
responses("`incomplete`: filter", "report 4", fails("a filter held", ReplyRefused, reason="content_filter"), response(status="incomplete", incomplete_details={"reason": "content_filter"}))
responses("a refusal", "report 4", fails("the model refused: I cannot", ReplyRefused, reason="refusal"), response(item({"type": "refusal", "refusal": "I cannot"})), {"type": "response.refusal.delta", "delta": "I cannot"})
responses("a function call", "report 4", Out("", called="python", arguments="{}"), response({"type": "function_call", "name": "python", "arguments": "{}"}))
ROWS.append(Row("text that comes in one piece alone", "BerriAI/litellm#25403", Out(), events({"type": "response.output_text.done", "text": "hello"}, end(response()), done=False, named=True), None, "responses"))
responses("`failed`", "openai: server_error", fails("fell over", again=True), response(status="failed", error={"code": "server_error", "message": "fell over"}))
responses("a message that is `incomplete` in a response that is `completed`", "OpenAI: status of items", Out(cut=True), response({**item(part("hello")), "status": "incomplete"}))
responses("a search by the maker before the text", "OpenAI: web_search_call", Out(), response({"type": "web_search_call", "status": "completed"}, item(part("hello"))))
responses("commentary before the answer", "OpenAI: phase of messages", Out(thinking="I look."), response({**item(part("I look.")), "id": "c", "phase": "commentary"}, {**item(part("hello")), "phase": "final_answer"}), {"type": "response.output_item.added", "item": {"type": "message", "id": "c", "phase": "commentary"}}, {"type": "response.output_text.delta", "delta": "I look.", "item_id": "c"}, text_delta("hello"))
ROWS.append(Row("a refusal that comes in one piece, behind text", "OpenAI: response.refusal.done", fails("I cannot", ReplyRefused, reason="refusal"), events(text_delta("hello"), {"type": "response.refusal.done", "refusal": "I cannot"}, end(response()), done=False, named=True), None, "responses"))
for _kind in ("failed", "cancelled"):
    ROWS.append(Row(f"`response.{_kind}` without a response", "kin of openai: server_error", fails(f"broke off (failed: {_kind})", again=True), events(text_delta("hello"), {"type": f"response.{_kind}"}, done=False, named=True), None, "responses"))
responses("output of null", "kin", Out(""), {**response(), "output": [None, {"type": "message", "content": None}]})
ROWS.append(Row("an event of an error", "openai: error events", fails("slow", RateLimited, again=True), events({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, done=False, named=True), None, "responses"))
ROWS.append(Row("a stream without its end", "kin of pydantic-ai#6610", fails("ended in the middle", again=True), events(text_delta("hel"), done=False, named=True), None, "responses"))


def block(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def claude(name: str, source: str, out: Out, *content: dict[str, Any], reason: Any = "end_turn", last: bool = True, **more: Any) -> None:
    """A message of these blocks: streamed in pieces, and whole."""
    start = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
             "usage": {"input_tokens": 11, "output_tokens": 1}}  # fmt: skip
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, one in enumerate(content):
        kind = one["type"]
        if kind in ("text", "thinking"):
            sent.append(block(index, kind, **{kind: ""}))
            sent.append({"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", kind: one[kind]}})
        else:
            sent.append(block(index, **{"kind": kind}, **{k: v for k, v in one.items() if k != "type"}))
        sent.append({"type": "content_block_stop", "index": index})
    sent += [{"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": {"output_tokens": 7}}] if reason else []
    sent += [{"type": "message_stop"}] if last else []
    whole = body({**start, "content": list(content), "stop_reason": reason, **more}) if last else None
    ROWS.append(Row(name, source, out, events(*sent, done=False, named=True), whole, "anthropic"))


HELLO, THOUGHT = {"type": "text", "text": "hello"}, {"type": "thinking", "thinking": "hm", "signature": "s"}
claude("a plain reply", "the document of the API", Out(), HELLO)
claude("thinking before it", "extended thinking", Out("hello", "hm"), THOUGHT, HELLO)
claude("redacted thinking", "extended thinking", Out(), {"type": "redacted_thinking", "data": "x"}, HELLO)
claude("`max_tokens`", "report 4", Out("hello", cut=True), HELLO, reason="max_tokens")
claude("`refusal`", "AstroVela/vane#476", fails("the model refused", ReplyRefused, reason="refusal"), reason="refusal")
claude("`refusal` with its reason", "Anthropic: stop_details", fails("the model refused: of weapons", ReplyRefused, reason="refusal"), reason="refusal", stop_details={"type": "refusal", "explanation": "of weapons"})
claude("a use of a tool", "laravel/ai#881", Out("", called="python"), {"type": "tool_use", "id": "t", "name": "python", "input": {}}, reason="tool_use")
claude("`pause_turn`", "tetsuo-ai/agenc-core#2111", fails("broke off (pause_turn)", again=True), HELLO, reason="pause_turn")
claude("no content", "spacedriveapp/spacebot#171", Out(""))
claude("a stream without its end", "kin of pydantic-ai#6610", fails("ended in the middle", again=True), HELLO, reason=None, last=False)
ROWS.append(Row("overloaded in the stream", "Anthropic: error events", fails("Overloaded", again=True), events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, done=False, named=True), body({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "anthropic"))
ROWS.append(Row("too long a prompt", "opencode#18853", fails("", PromptTooLong, tokens=208310, window_tokens=200000), body({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}}, 400), None, "anthropic"))
ROWS.append(Row("too long with the room for the reply", "Anthropic", fails("", PromptTooLong, tokens=206192, window_tokens=200000), body({"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000"}}, 400), None, "anthropic"))
ROWS.append(Row("a web page", "base_url", fails("a web page"), Answer(b"<html><title>hi</title></html>", HTML), None, "anthropic"))
ROWS.append(Row("`temperature` refused", "ecosystem 4", Out("hello", notes=("refuses temperature",)), lambda request: (body({"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}}, 400) if "temperature" in request else ROWS_PLAIN()), None, "anthropic", {"temperature": 0}))


def ROWS_PLAIN() -> Answer:
    plain = next(row for row in ROWS if (row.api, row.name) == ("anthropic", "a plain reply")).streamed
    assert isinstance(plain, Answer)
    return plain
