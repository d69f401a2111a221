"""Whether a prompt is too long, in words that public reports quote, and in words of other failures."""

from __future__ import annotations

import pytest

from rlm.errors import LLMError, PromptTooLong, RateLimited
from rlm.models.endpoint_errors import CallTarget, make_error, read_error

TOO_LONG = [
    ("This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (69000 in the messages, "
     "1000 in the completion).", 70000, 65536),
    ("This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens", 40000, 32768),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.", 300000, 272000),
    ("The decoder prompt (length 10000) is longer than the maximum model length of 8192.", 10000, 8192),
    ("The input (10000 tokens) is longer than the model's context length (8192 tokens).", 10000, 8192),
    ("Requested token count exceeds the model's maximum context length of 8192 tokens.", None, 8192),
    ("request (9,000 tokens) exceeds the available context size (8,192 tokens), try increasing it", 9000, 8192),
    ("Requested tokens (2100) exceed context window of 2048", 2100, 2048),
    ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.", 150000, 131072),
    ("The prompt is too long: 140000, model maximum context length: 131071", 140000, 131071),
    ("Please reduce the length of the messages or completion. Current length is 10000 while limit is 8192", 10000, 8192),
    ("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 100 `max_new_tokens`", 9000, 8193),
    ("Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", 5000, 4096),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 5000, 4081),
    ("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)", 9000, 8192),
    ("prompt token count of 130000 exceeds the limit of 128000", 130000, 128000),
    ("Prompt length (9000) exceeds maximum input length (8192). Set --max_input_len", 9000, 8192),
    ("Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)", 5152, 2048),
    ("The prompt size exceeds the context window size and cannot be processed.", None, None),
    ("Context size has been exceeded.", None, None),
    ("the input length exceeds the context length", None, None),
    ("Prompt exceeds max length", None, None),
    ("Request body too large for gpt-4o model. Max size: 8000 tokens.", None, 8000),
    ("Extra usage is required for long context requests", None, None),
    ("Reached context length of 32000 tokens with model (arch: gpt-oss)", None, 32000),
    ("Conversation is too long for this model", None, None),
    ("The total length of the prompt and the reply is over the context window (4096)", None, 4096),
]  # fmt: skip


@pytest.mark.parametrize(("words", "tokens", "window"), TOO_LONG, ids=[words[:50] for words, _, _ in TOO_LONG])
@pytest.mark.parametrize("status", [400, 413, 422, 500, None])
def test_too_long(words: str, tokens: int | None, window: int | None, status: int | None) -> None:
    error = make_error(read_error({"error": {"message": words}}), CallTarget("m", "http://x/v1"), status=status)
    assert isinstance(error, PromptTooLong)
    assert (error.tokens, error.window_tokens) == (tokens, window)
    assert words[:40] in str(error)
    assert not error.transient


@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"]
)
def test_too_long_by_its_code(code: str) -> None:
    error = make_error(
        read_error({"error": {"message": "no", "code": code}}), CallTarget("m", "http://x/v1"), status=400
    )
    assert isinstance(error, PromptTooLong)


OTHERS = [
    (429, "Too many tokens, please wait before trying again.", RateLimited),
    (400, "Too many tokens, please wait before trying again.", LLMError),
    (429, "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Try again in 2s", RateLimited),
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided "
          "100000.", LLMError),
    (400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m", LLMError),
    (400, "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens and "
          "your request has 30 input tokens (9000 > 8192 - 30).", LLMError),
    (400, "Invalid 'stop': array too long. Expected an array with maximum length 4", LLMError),
    (400, "temperature must be at most 2", LLMError),
    (400, "image is too large", LLMError),
    (404, "model m-long-context-length does not exist", LLMError),
    (500, "the context could not be loaded", LLMError),
    (503, "Loading model", LLMError),
    (402, "Your credit limit is reached", LLMError),
]  # fmt: skip


@pytest.mark.parametrize(("status", "words", "kind"), OTHERS, ids=[words[:50] for _, words, _ in OTHERS])
def test_other_failures_are_not(status: int, words: str, kind: type) -> None:
    error = make_error(read_error({"error": {"message": words}}), CallTarget("m", "http://x/v1"), status=status)
    assert type(error) is kind
