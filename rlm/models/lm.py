"""Define the interface of a language model: messages, replies, token counts, checks of replies, a model for tests."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from rlm.errors import LLMError, PromptTooLong, ScriptExhausted

Message = dict[str, str]  # `{"role": ..., "content": ...}`
OnDelta = Callable[[str], object] | None  # is called with each piece of a reply's text as it arrives


@dataclass(frozen=True, slots=True)
class TokenDetails:
    """Parts of a call's tokens that have a price of their own, as far as the endpoint reports them."""

    cache_read: int = 0  # input tokens that the provider's cache held
    cache_write: int = 0  # input tokens written to that cache
    cache_write_1h: int = 0  # written tokens kept for an hour, at another price
    reasoning: int = 0  # output tokens of thinking that is billed and not sent
    tier: str = ""  # the service tier or speed that the endpoint says it charged, such as `flex`; empty if standard
    endpoint: str = ""  # the endpoint's URL without secrets, or the provider's name; empty if unknown


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one call of a model."""

    text: str
    input_tokens: int  # 0 if the endpoint reports none
    output_tokens: int  # 0 if the endpoint reports none
    model: str  # the name of the model in the call
    dollars: float | None = None  # the cost that the endpoint reports; None if it reports none: the price table decides
    cached: bool = False  # whether the cache of sub-calls answered, so that no call was made or counted
    estimated: bool = False  # whether the endpoint reported no tokens; see `rlm.calls.usage.with_counted_usage`
    details: TokenDetails = field(default_factory=TokenDetails)
    thinking: str = ""  # the model's thinking, as far as the endpoint sends it; neither code nor answer
    cut: bool = False  # whether the text ends in the middle: at a limit of tokens, or because it only repeated itself
    called: str = ""  # the tool that the model called instead of an answer, although none was offered
    call_arguments: str = ""  # the arguments of that call, as JSON
    notes: tuple[str, ...] = ()
    """Sentences for the notes of the run, such as on options that the endpoint refused and that were left out."""


class LM(Protocol):
    """A language model. Safe for use by many threads.

    Optional attributes: `model`, the default name; `prompt_characters`, the most characters of a prompt;
    `window_tokens`, the window of the model; `secrets`, strings that no record may hold; `close()`, which closes
    connections; `sampling`, the options of each request, and `with_sampling(options)`, the same model with others.
    """

    def complete(self, messages: Sequence[Message], *, model: str | None = None, on_delta: OnDelta = None) -> Reply:
        """Answer a conversation, calling `on_delta` with each piece of text as it arrives. Raises LLMError, whose
        `transient` says whether another try may succeed. An exception of `on_delta` passes through."""
        ...


@dataclass(slots=True, eq=False)
class Listener:
    """Calls `on_delta` and keeps what it raises, so that a backend can tell this from a failure of its endpoint."""

    on_delta: OnDelta = None
    check: Callable[[], object] | None = None  # called before each piece; what it raises ends the call
    raised: BaseException | None = None
    has_heard: bool = False  # whether text has arrived

    def __call__(self, delta: str) -> None:
        """Pass on a piece of the text. An empty piece says that the model is thinking."""
        try:
            if self.check:
                self.check()
            if delta:
                self.has_heard = True
                if self.on_delta:
                    self.on_delta(delta)
        except BaseException as exc:
            self.raised = exc
            raise


def call_key(model: str, messages: Sequence[Message]) -> str:
    """The key of a call: equal for the same model and the same messages."""
    text = json.dumps([model, [[message["role"], message["content"]] for message in messages]])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def reply_fields(reply: Reply) -> dict[str, Any]:
    """The fields of a reply in a trajectory. Optional fields, such as `cut`, are left out unless they are set."""
    details = {name: value for name, value in asdict(reply.details).items() if value}
    optional = {"estimated": reply.estimated, "token_details": details, "cut": reply.cut, "called": reply.called,
                "call_arguments": reply.call_arguments, "thinking": reply.thinking}  # fmt: skip
    return {
        "response": reply.text, "prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens,
        **{name: value for name, value in optional.items() if value},
    }  # fmt: skip


# -- tokens ------------------------------------------------------------------------------------------------------------

CHARACTERS_PER_TOKEN = 4  # for estimates: English prose and code have between 3.5 and 4.5
_MOST_TOKENS = 10**9  # the most tokens of one call; a larger report is invalid
_WIDE_CHARACTERS = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U0001b000-\U0001faff\U00020000-\U0003ffff]+"
)
"""Characters that take at least a token each: Chinese, Japanese, Korean and emoji."""


def estimate_tokens(messages: Sequence[Message]) -> int:
    """The tokens of a prompt, estimated as by `estimate_text_tokens`."""
    return sum(map(estimate_text_tokens, [message["content"] for message in messages]))


def estimate_text_tokens(text: str) -> int:
    """The tokens of a text, estimated from its characters. One token is four ASCII characters other than digits, one
    digit, one character of Chinese, Japanese or Korean, one emoji, or two characters of any other script."""
    digits = sum(map(text.count, "0123456789"))
    wide = other = 0
    if not text.isascii():
        wide = sum(map(len, _WIDE_CHARACTERS.findall(text)))
        other = len(text) - len(text.encode("ascii", "ignore")) - wide
    plain = len(text) - digits - wide - other
    return digits + wide + -(-other // 2) + -(-plain // CHARACTERS_PER_TOKEN)


def sum_tokens(*reported: object) -> int:
    """The sum of token counts from an endpoint; 0, which means unknown, if one of them is invalid. Whole numbers from
    0 to a billion are valid, also as floats; anything else is not."""
    total = 0
    for count in reported:
        number = int(count) if isinstance(count, float) and count.is_integer() else count
        if type(number) is not int or not 0 <= number <= _MOST_TOKENS:
            return 0
        total += number
    return total


# -- checks of replies -------------------------------------------------------------------------------------------------

_OLLAMA_WINDOWS = [1024 << i for i in range(1, 8)]  # in tokens, 2,048 to 131,072
_LEAST_WINDOW = 256  # no window has fewer tokens, so a smaller count is wrong
_MOST_CHARACTERS_PER_TOKEN = 8  # an endpoint that counts one token for so many may have cut the prompt


def check_whole(reply: Reply) -> None:
    """Raise LLMError, whose `reply` is this reply, if the reply is cut, empty or a tool call."""
    if reply.cut:
        start = f": {' '.join(reply.text.split())[:100]!r}" if reply.text.strip() else ""
        fault = f"the answer was cut by the limit of tokens after {len(reply.text):,} characters{start}; ask for less"
    elif reply.called:
        fault = f"it called the tool {reply.called!r} instead of answering; ask for plain text"
    elif not has_words(reply.text):
        fault = f"it gave an empty answer{', after thinking' if reply.thinking else ''}; ask again, or for less"
    else:
        return
    error = LLMError(f"model {reply.model!r}: {fault}")
    error.reply = reply
    raise error


def check_prompt(reply: Reply, messages: Sequence[Message]) -> None:
    """Raise PromptTooLong, whose `reply` is this reply, if the endpoint counted too few tokens for these messages.
    Servers such as Ollama silently cut a prompt that exceeds their window, and answer from what is left of it."""
    if reply.estimated or reply.details.cache_read:
        return
    counted, texts = reply.input_tokens, [message["content"] for message in messages]
    characters = sum(map(len, texts))
    # Ollama counts up to three tokens more than its window for a prompt that it cut.
    is_near_window = any(-1 <= counted - window <= 3 for window in _OLLAMA_WINDOWS)
    fills_window = is_near_window and estimate_tokens(messages) > 1.2 * counted
    is_few = counted >= _LEAST_WINDOW and characters >= _MOST_CHARACTERS_PER_TOKEN * counted
    if not (fills_window or is_few):
        return
    # Fewer tokens than any tokenizer makes of a text: two words, or 20 letters, are not a single token.
    fewest_tokens = sum(max(len(text.split()) // 2, sum(map(str.isalnum, text)) // 20) for text in texts)
    if not fills_window and counted >= fewest_tokens:  # few, but possible, as for lines of dashes
        return
    error = PromptTooLong(
        f"model {reply.model!r}: the endpoint read {counted:,} tokens of a prompt of {characters:,} characters, so "
        "it cut the prompt to its window: send less, or raise the window (Ollama: OLLAMA_CONTEXT_LENGTH, num_ctx)",
        tokens=max(fewest_tokens, estimate_tokens(messages)), window_tokens=counted,
    )  # fmt: skip
    error.reply = reply
    raise error


def has_words(text: str) -> bool:
    """Whether a text has a visible character."""
    return any(character.isprintable() and not character.isspace() for character in text)


# -- a model for tests -------------------------------------------------------------------------------------------------

Script = Iterable[str | BaseException] | Callable[[Any], str]


class ScriptedLM:
    """A model for tests, which replies with the items of a list in order, or with what a function returns. An item that
    is an exception is raised. The function gets the text of a single message, as in a sub-call, or a list of several
    messages, as at the root."""

    def __init__(self, script: Script, *, model: str = "scripted") -> None:
        """`script`: the list or function. `model`: the name of the model. Raises TypeError if `script` is a str."""
        if isinstance(script, str):
            raise TypeError(f"script must be a list of replies or a function, not one str: write [{script[:40]!r}]")
        self._script = script if callable(script) else list(script)
        self._lock = threading.Lock()
        self.model = model
        """The name under which usage is counted."""
        self.calls: list[list[Message]] = []
        """The messages of each call so far, copied."""

    def complete(self, messages: Sequence[Message], *, model: str | None = None, on_delta: OnDelta = None) -> Reply:
        """The next reply, which is passed to `on_delta` line by line. Four characters count as one token. Raises
        ScriptExhausted when the list has no further reply."""
        with self._lock:
            turn = len(self.calls)
            self.calls.append([dict(message) for message in messages])
        if callable(self._script):
            text = self._script(messages[0]["content"] if len(messages) == 1 else list(messages))
        elif turn >= len(self._script):
            raise ScriptExhausted(f"the script of {len(self._script)} replies has no reply number {turn + 1}: add it")
        elif isinstance(reply := self._script[turn], BaseException):
            raise reply
        else:
            text = reply
        if on_delta:
            for line in text.splitlines(keepends=True):
                on_delta(line)
        characters = sum([len(message["content"]) for message in messages])
        return Reply(text, (characters + 3) // 4, (len(text) + 3) // 4, model or self.model)
