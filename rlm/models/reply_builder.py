"""Build a `Reply` from what an endpoint sends: pieces of text, a reason for the end, and usage. Does no I/O.

`chat`, `responses` and `anthropic` read the JSON of their APIs, and pass its parts to a `ReplyBuilder`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlm.errors import LLMError, ReplyRefused
from rlm.models.endpoint_errors import CallTarget, EndpointError, find_error, one_line
from rlm.models.lm import Listener, Reply, TokenDetails, sum_tokens
from rlm.models.sdk_options import strip_url

_NAME_CHARACTERS = 80  # the most characters of a reason, or of a tool's name, that are kept
_REPEATED_CHARACTERS = 8_000  # a reply is ended when this many characters at its end only repeat one text
_UNIT_CHARACTERS = 2_000  # the longest text that is looked for in repeats

# Searched in a reason without case and punctuation: `MAX_TOKENS`, `MaxTokens` and `max-tokens` read the same.
_CUT_REASON = re.compile(
    "length|max(?:output|completion|new)?tokens|max(?:len|context)|limit|exceeded|truncated|incomplete"
)
# `language` is Google's: the language is not supported.
_REFUSED_REASON = re.compile(
    "contentfilter|safety|recitation|blocklist|prohibitedcontent|spii|refusal|refused|sensitive|guardrail|moderation"
    "|blocked|contentpolicy|language|toxic|modelarmor"
)
# `other` is Google's too: it stopped for a reason of its own.
_BROKEN_REASON = re.compile(
    "error|abort|cancel|insufficientsystemresource|pauseturn|failed|malformed|other|timeout|interrupt|repetition"
)
_NO_REASONS = ("null", "none", "notfinished", "finishreasonunspecified")  # the reply goes on
_TOOL_REASON = re.compile("toolcall|tooluse|functioncall")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # the two surrogates of one character
_STANDARD_TIERS = ("default", "standard", "auto")  # what endpoints call the tier without a name of its own


class ReportedUsage(NamedTuple):
    """The tokens and dollars of a call, as its endpoint reports them."""

    input_tokens: int  # including those of the cache; 0 if unknown
    output_tokens: int  # 0 if unknown
    details: TokenDetails
    dollars: Any  # not checked; None if the endpoint reports none


@dataclass(slots=True)
class ReplyBuilder:
    """The parts of one reply that have arrived so far."""

    on_piece: Listener = field(default_factory=Listener)  # called with each piece of the text; with "" for thinking
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)  # the model's words as it refuses
    tool: str = ""  # the name of a tool that the model calls
    arguments: list[str] = field(default_factory=list)  # the arguments of that call, as pieces of JSON
    end_reason: str = ""  # the endpoint's word for why the reply ended, such as `stop`
    end_details: str = ""  # the endpoint's sentence on `end_reason`; empty if it sends none
    is_whole: bool = False  # whether the end has arrived: a reason, the mark of the end of a stream, or the whole body
    repeats: bool = False  # whether the text or thinking only repeats itself at its end: then a stream is ended
    _unchecked: int = 0  # characters that came since `repeats` was checked
    usage: Any = None  # the counts of tokens, as the endpoint sends them
    tier: Any = None  # the service tier that the endpoint says it charged
    tool_index: object = None  # for streams of Anthropic: the number of the content block with the tool call
    commentary_ids: set[str] = field(default_factory=set)  # for the Responses API: items whose text counts as thinking

    def add_text(self, text: object) -> None:
        """Add a piece of the text; anything but a `str` is ignored."""
        if isinstance(text, str) and text:
            self.text.append(text)
            self._look_for_repeats(self.text)
            self.on_piece(text)

    def add_thinking(self, text: object) -> None:
        """Add a piece of thinking; anything but a `str` is ignored."""
        if isinstance(text, str) and text:
            self.thinking.append(text)
            self._look_for_repeats(self.thinking)
            self.on_piece("")

    def add_refusal(self, text: object) -> None:
        """Add a piece of the model's words as it refuses; anything but a `str` is ignored."""
        if isinstance(text, str):
            self.refusal.append(text)

    def set_end(self, reason: object) -> None:
        """Record the endpoint's word for why the reply ended, and that it is whole. Ignores words for "not yet"."""
        if isinstance(reason, str) and reason and _letters(reason) not in _NO_REASONS:
            self.end_reason = one_line(reason)[:_NAME_CHARACTERS]
            self.is_whole = True

    def add_tool_call(self, name: object, arguments: object = None) -> None:
        """Record the first tool that the model calls; ignore later ones."""
        if not self.tool:
            self.tool = one_line(name if isinstance(name, str) else "")[:_NAME_CHARACTERS] or "unnamed"
            self.add_arguments(arguments)

    def add_arguments(self, arguments: object) -> None:
        """Add arguments of the recorded call: an object, or a piece of JSON."""
        if arguments:
            self.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def build(self, target: CallTarget, usage: ReportedUsage) -> Reply:
        """The reply to a call, which may be cut or empty. Raises ReplyRefused, and LLMError if the reply broke off."""
        text, thinking = join_surrogates("".join(self.text)), join_surrogates("".join(self.thinking))
        reason, refusal = _letters(self.end_reason), " ".join("".join(self.refusal).split())
        is_cut = self.repeats or _CUT_REASON.search(reason) is not None
        called = self.tool or ("unnamed" if _TOOL_REASON.search(reason) else "")
        reply = Reply(
            text, usage.input_tokens, usage.output_tokens, target.model, usage.dollars, details=usage.details,
            thinking=thinking, cut=is_cut, called=called, call_arguments="".join(self.arguments),
            notes=(f"{target}: a reply that only repeated itself was ended",) if self.repeats else (),
        )  # fmt: skip
        if refusal or _REFUSED_REASON.search(reason):
            raise self._refused(target, reply, refusal)
        if _BROKEN_REASON.search(reason):
            words = f": {self.end_details}" if self.end_details else ""
            raise LLMError(f"{target}: the reply broke off ({self.end_reason}){words}", transient=True)
        if not self.is_whole and not self.repeats:
            raise LLMError(f"{target}: the stream ended in the middle, after {len(text):,} characters", transient=True)
        return reply

    def _look_for_repeats(self, pieces: list[str]) -> None:
        """Set `repeats` if the text or thinking ends in repeats. Looks only once every 2,000 characters."""
        self._unchecked += len(pieces[-1])
        if self._unchecked >= _REPEATED_CHARACTERS // 4:
            self._unchecked = 0
            self.repeats = _ends_in_repeats(pieces)

    def _refused(self, target: CallTarget, reply: Reply, refusal: str) -> ReplyRefused:
        """The error for a reply that the model or a filter refused, with what they say about it."""
        reason = self.end_reason.lower()
        words = refusal or self.end_details or (one_line(reply.text) if reason == "refusal" else "")
        is_refusal = refusal or reason.startswith("refus")
        cause = "the model refused" if is_refusal else f"a filter held the answer back ({self.end_reason})"
        words = f": {one_line(words)}" if words else ""
        error = ReplyRefused(f"{target}: {cause}{words}", reason="refusal" if is_refusal else "content_filter")
        error.reply = reply
        return error


def read_details(
    input_tokens: int, output_tokens: int, *, cache_read: object = None, cache_write: object = None,
    cache_write_1h: object = None, reasoning: object = None, tier: object = None, endpoint: object = None,
) -> TokenDetails:  # fmt: skip
    """Check the details that an endpoint reports, named as the fields of TokenDetails. Impossible counts become 0, so
    that they cannot lower a cost. `input_tokens` and `output_tokens` include the tokens of the details."""
    read, written, written_1h, thought = map(sum_tokens, (cache_read, cache_write, cache_write_1h, reasoning))
    if read + written > input_tokens or written_1h > written:
        read = written = written_1h = 0
    return TokenDetails(
        cache_read=read, cache_write=written, cache_write_1h=written_1h,
        reasoning=thought if thought <= output_tokens else 0,
        tier=tier if isinstance(tier, str) and tier not in _STANDARD_TIERS else "",
        endpoint="" if endpoint is None else strip_url(str(endpoint)),
    )  # fmt: skip


def raise_if_failed(value: object) -> None:
    """Raise EndpointError if a JSON value reports a failure, whatever the HTTP status."""
    if (report := find_error(value)) is not None:
        raise EndpointError(report)


def _ends_in_repeats(pieces: list[str]) -> bool:
    """Whether the last 8,000 characters repeat one text of at most 2,000 characters."""
    # No piece is empty, so 8,000 pieces hold at least 8,000 characters.
    end = "".join(pieces[-_REPEATED_CHARACTERS:])[-_REPEATED_CHARACTERS:]
    # A text that repeats begins with the same characters again after one unit.
    length = end.find(end[:_UNIT_CHARACTERS], 1, 2 * _UNIT_CHARACTERS)
    return len(end) == _REPEATED_CHARACTERS and length > 0 and end[length:] == end[:-length]


def _letters(reason: str) -> str:
    """A reason in lower case, without punctuation and spaces."""
    return re.sub(r"[\W_]", "", reason.lower())


def join_surrogates(text: str) -> str:
    """The text with each pair of surrogates joined into one character: a stream may have split the pair."""
    return _SURROGATE_PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
