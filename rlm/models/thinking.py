"""Separate a model's thinking from its answer, in replies that hold both as one text.

Endpoints send thinking in a field of its own, or, without the parser for the model, in the text: `<think>...</think>`
and similar tags, the channels of gpt-oss. Rules, each with a case in the tests:

- an opening tag counts at the start of a line, and behind other thinking; it may have attributes
- thinking ends at the next closing tag, regardless of fences or answers in it; without one all the rest is thinking
- a closing tag without an opening one ends thinking too, since chat templates write the opening tag: the text before
  it, up to earlier thinking, is thinking
- models whose marks are words (Granite, Apriel) think up to the line that says that the response begins
- marks around the whole answer, and tokens that end a turn, are not part of it
- tags in a fenced block, in inline code, in quotes, in a `FINAL(...)`, in the middle of a sentence, or in a reply that
  is Python as a whole are mentions, and stay. A fence that is never closed protects nothing that ends thinking
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from rlm.models.lm import Reply
from rlm.models.syntax import compiles

_WORD = (
    r"(?:\w+:|longcat_|inner_)?(?:ant)?(?:think|thinking|thoughts?|reasoning|reason|monologue|scratchpad|reflection"
    r"|chain_of_thought)(?:_process)?"
)
_KINDS = {
    "xml": (rf"< ?{_WORD}(?:\s[^<>\n]*)?(?<!/)>", rf"< ?/ ?{_WORD}\s*>"),
    "pipes": (r"<\|(?:think|thinking)\|>", r"<\|/(?:think|thinking)\|>|<\|end\|>\s*<\|begin\|>assistant<\|content\|>"),
    "medgemma": (r"<unused94>thought\b", r"<unused95>"),
    "bracket": (r"\[(?:think|thinking|thought|reasoning)\]", r"\[/(?:think|thinking|thought|reasoning)\]"),
    "kimi": (r"◁think▷", r"◁/think▷"),
    "cohere": (r"<\|(?:start|begin)_(?:of_)?(?:thinking|thought)\|>", r"<\|end_(?:of_)?(?:thinking|thought)\|>"),
    "gemma": (r"<\|channel>thought\b", r"<channel\|>"),
}
_OPEN = "|".join(f"(?P<{kind}>{opening})" for kind, (opening, _) in _KINDS.items())
_CLOSE = "|".join(closing for _, closing in _KINDS.values())
_TAG = re.compile(f"{_OPEN}|(?P<close>{_CLOSE})", re.IGNORECASE)
_CLOSINGS = {kind: re.compile(closing, re.IGNORECASE) for kind, (_, closing) in _KINDS.items()}
_EVENT = re.compile(
    r"(?P<fence>^[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$)"
    r"|(?P<final>^[ \t]*\**(?:FINAL|SUBMIT)[ \t]*\()"
    rf"|(?P<inline>(?<!`)`[^`\n]+`)|{_TAG.pattern}",
    re.MULTILINE | re.IGNORECASE,
)
_EVENT_BEHIND = re.compile(_EVENT.pattern.replace(r"^[ \t]*", r"[ \t]*"), _EVENT.flags)
"""The same behind thinking, where a line of what is said begins."""
_CODE_INFO = re.compile(r"[ \t{.]*(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?(?![\w-])", re.IGNORECASE)
_TAGGED_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*[\w{][^`\n]*$", re.MULTILINE)
_MENTION_BEFORE = re.compile(r"\w[ \t]+\Z")
_MENTION_BEHIND = re.compile(r"[ \t]+[a-z(]|[.,;:!?)'\"]")
_BEHIND = re.compile(r"(?:[ \t]*\n)+|[ \t]*")
_FENCES_TRIED = 20
"""Places where one block may end; each costs a parse of it."""
_CALLS_TRIED = 50
"""A `FINAL(` that never closes costs a search to the end; a model that repeats itself writes thousands."""
_LINE = 400
"""Characters of a line before a tag that are looked at."""

# --- the channels of gpt-oss, with their special tokens and with those left out, as some servers send them ---
_CHANNEL = re.compile(
    r"(?:<\|(?:end|return|call)\|>\s*)?(?:<\|start\|>[\w.]*(?P<role>[^<\n]*))?"
    r"<\|channel\|>\s*(?P<name>analysis|commentary|final)\b(?P<to>[^<\n]*)(?:<\|constrain\|>[^<\n]*)?<\|message\|>"
)
_CHANNEL_OPEN = re.compile(r"(?:<\|start\|>[\w.]*[^<\n]*)?<\|channel\|>\s*(?:analysis|commentary)?\b[^<\n]*\Z")
_CALL = re.compile(r"^[ \t]*(?:FINAL|SUBMIT)[ \t]*\(", re.MULTILINE)
_ENDS = (
    "<|end|>", "<|return|>", "<|call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<|user|>", "<|observation|>", "<end_of_turn>", "<eos>", "</s>", "<｜end▁of▁sentence｜>",
)  # fmt: skip
"""Tokens that end a turn."""
_BOX = re.compile(r"\s*<\|(?:START_RESPONSE|begin_of_box|begin_of_solution|start\|>assistant<\|message)\|>")
_BOX_END = re.compile(r"<\|(?:END_RESPONSE|end_of_box|end_of_solution)\|>\s*\Z")
"""Marks around all that is said."""
_PREFACE = re.compile(
    r"\A\s*Thinking\.\.\.\n(?P<shown>.*?)^\.\.\.done thinking\.\s*"
    r"|\A\s*Here(?:'s| is) my thought process:(?P<thought>.*?)(?:^[ \t]*Here(?:'s| is) my response:[ \t]*\n?|\Z)"
    r"|\A(?P<steps>.*)^\[BEGIN FINAL RESPONSE\][ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)
"""Marks that are words: `ollama run`, Granite and Apriel."""
_GLUED = re.compile(r"(?<![\w\"'`/-])assistant(?P<name>analysis|commentary|final)(?=[A-Z0-9`{\[*#<\n]|\Z)")
_GLUED_BEHIND_SENTENCE = re.compile(r"(?<![A-Za-z_\"'`/-])assistant(?P<name>analysis|commentary|final)(?![_(=.])")
_GLUED_START = re.compile(r"\s*analysis(?=[A-Z][\w']*[ ,]+[A-Za-z])")

_BEGUN = re.compile(
    rf"`?(?:{_TAG.pattern})|`?<[|｜]|`?(?:< ?/? ?[\w:]*(?:\s[^<>\n]*)?|\[/?[a-z]*|◁/?[a-z]*)\Z"
    r"|<unused94>[a-z]*\Z|assistant(?:analysis|commentary|final)?|(?:assistan|assista|assist|assis|assi|ass|as|a)\Z",
    re.IGNORECASE,
)
_GLUED_BEGUN = re.compile(r"\s*a(?:n(?:a(?:l(?:y(?:s(?:i(?:s|\Z)|\Z)|\Z)|\Z)|\Z)|\Z)|\Z)")
_HOLD = 80
"""The characters at the beginning of a reply that show whether it is a channel whose tokens were left out."""
_MARKS = (
    "<|channel|>", "<|message|>", "assistantfinal", "[BEGIN FINAL RESPONSE]", "...done thinking.", "<|START_RESPONSE|>",
    "<|begin_of_box|>", "<|begin_of_solution|>",
)  # fmt: skip
_MOST_WORK = 2_000_000
"""Characters that are looked at again as a reply streams."""


def separate_thinking(reply: Reply) -> Reply:
    """The reply with its thinking in `thinking`, behind what its endpoint sent there.

    The text alone goes back to the model with the next turn. Makers say so for their models: templates of Qwen,
    DeepSeek and gpt-oss drop earlier thinking or refuse it. Those that want it back (signed blocks of Claude,
    encrypted items of the Responses API, MiniMax) want it within one chain of calls of their tools, and a turn of ours
    calls none.
    """
    text, thought = split_thinking(reply.text)
    if not thought and text == reply.text:
        return reply
    return replace(reply, text=text, thinking="\n\n".join(filter(None, (reply.thinking, thought))))


def split_thinking(text: str, *, thought_before: bool = False) -> tuple[str, str]:
    """What a reply says, and what it thinks; `thought_before`: the text stands behind thinking. Linear but for replies
    of many broken blocks."""
    if not _may_think(text, text[:_HOLD]):
        return text, ""
    thought: list[str] = []
    if (preface := _PREFACE.match(text)) is not None:
        thought.append(preface["thought"] or preface["steps"] or preface["shown"] or "")
        text = text[preface.end() :].rstrip().removesuffix("[END FINAL RESPONSE]").rstrip()
    channels = _split_channels(text)
    if channels is not None:
        text, first = channels
        thought.append(first)
    if _TAG.search(text) and not _is_python(text):
        found = _scan(text, thought_before=thought_before)
        text = found.said
        thought += found.thought
    if (box := _BOX.match(text)) is not None:
        text = _BOX_END.sub("", text[box.end() :])
    return text, "\n\n".join(filter(None, (part.strip() for part in thought)))


class SaidText:
    """Passes on a reply as it streams, without its thinking.

    Text that was passed on before a closing tag without an opening one cannot be taken back. Otherwise the pieces are
    those of `split_thinking`, however the reply is cut. A reply that mentions tags all the time comes in one piece at
    its end.
    """

    def __init__(self, hear: Callable[[str], object]) -> None:
        self._hear = hear
        self._text = ""
        """Text since the last thinking."""
        self._passed = ""
        """The part of it that was passed on."""
        self._thought = self._is_fresh = self._is_tagged = self._is_open = False
        self._work = 0

    def push(self, delta: str) -> None:
        """More of the reply."""
        self._text += delta
        if self._is_fresh:
            self._text = self._text[_behind(self._text, 0) :]
            self._is_fresh = not self._text
        known = len(self._text) - len(delta)
        line = max(0, self._text.rfind("\n", 0, known), known - _LINE)
        if _may_think(self._text[line:], self._text[:_HOLD]):
            self._is_tagged = True
        if not self._is_tagged:
            self._pass(self._text[: self._sure()])
        elif "\n" in delta and not _BOX.match(self._text):
            sure = self._text[: self._sure()]
            self._work += len(sure)
            if self._work < _MOST_WORK and not (self._is_open and not _may_think(self._text[line : len(sure)], "")):
                self._look(sure)

    def end(self) -> None:
        """The reply is complete."""
        self._pass(split_thinking(self._text, thought_before=self._thought)[0], sure=True)

    def _look(self, text: str) -> None:
        channels = _split_channels(text)
        if channels is not None:
            self._is_open = not channels[0]
            self._pass(_scan(channels[0], whole=False).said)
            return
        found = _scan(text, whole=False, thought_before=self._thought)
        self._is_open = found.open_at is not None
        if _BOX.match(found.said):
            return
        self._pass(found.said, sure=bool(found.thought))
        if found.thought and found.open_at is None:
            self._thought, self._is_tagged = True, False
            self._is_fresh = found.begin == len(text)
            self._text, self._passed = self._text[found.begin :], text[found.begin :]

    def _sure(self) -> int:
        """Characters before a possible tag on the last line, whose end decides."""
        line = max(self._text.rfind("\n") + 1, len(self._text) - _LINE)
        if line == 0 and not self._thought and _GLUED_BEGUN.match(self._text):
            return 0
        begun = _BEGUN.search(self._text, line)
        return begun.start() if begun else len(self._text)

    def _pass(self, said: str, *, sure: bool = False) -> None:
        if said.startswith(self._passed):
            new, self._passed = said[len(self._passed) :], said
        elif not sure and self._passed.startswith(said):
            return
        else:  # the text passed on so far was thinking
            new, self._passed = "\n" + said if said else "", said
        if new:
            self._hear(new)


@dataclass(frozen=True, slots=True)
class _Scanned:
    said: str
    thought: list[str]
    begin: int
    """Where the last thinking ends."""
    open_at: int | None
    """Where thinking begins that does not end."""


def _may_think(text: str, start: str) -> bool:
    """Whether a text, or a piece of it, needs a closer look; `start`: how the text begins."""
    return bool(
        _TAG.search(text)
        or any(mark in text for mark in _MARKS)
        or text.rstrip().endswith(_ENDS)
        or _GLUED_START.match(start)
        or _PREFACE.match(start)
    )


def _is_python(text: str) -> bool:
    """Whether tags in it can only be in strings and comments."""
    return compiles(re.sub(r"\A\s*(?:repl|python)[ \t]*\n|\n[ \t]*`+\s*\Z", "", text))


def _scan(text: str, *, whole: bool = True, thought_before: bool = False) -> _Scanned:
    """Text without thinking in tags; `whole`: nothing more will come."""
    open_at: int | None = None
    said: list[str] = []
    thought: list[str] = []
    closings: dict[str, re.Match[str] | None] = {}
    calls = begin = at = 0  # begin: of what is not yet told apart; at: where to look
    while event := (
        _EVENT_BEHIND.match(text, at) if at == begin and len(thought) < _CALLS_TRIED else None
    ) or _EVENT.search(text, at):
        at = event.end()
        if event["fence"] is not None:
            at = _end_of_fence(text, event, whole) or at
        elif event["final"] is not None:
            calls += 1
            at = (_end_of_call(text, at, whole) if calls <= _CALLS_TRIED else None) or at
        elif event["inline"] is not None:
            continue
        elif event["close"] is None:
            kind = str(event.lastgroup)
            closing = closings.get(kind)
            if kind not in closings or (closing and closing.start() < at):
                closing = closings[kind] = _closing(text, at, kind)
            if not _opens(text, event, begin, closing, whole):
                continue
            before = text[begin : event.start()]
            said.append(before if before[-1:] in ("", "\n") else before + "\n")
            thought.append(text[at : closing.start() if closing else len(text)])
            begin = at = _behind(text, closing.end()) if closing else len(text)
            open_at = None if closing else event.start()
        elif not _is_mention(text, event, begin):
            if text[at:].strip() or not (thought or thought_before):
                thought.append(text[begin : event.start()])
            else:
                said.append(text[begin : event.start()])
            begin = at = _behind(text, at)
    said.append(text[begin:])
    joined = "".join(said)
    return _Scanned(joined.lstrip("\n") if thought else joined, thought, begin, open_at)


def _behind(text: str, at: int) -> int:
    """Where the text goes on behind a closing tag."""
    found = _BEHIND.match(text, at)
    return found.end() if found else at


def _opens(text: str, tag: re.Match[str], begin: int, closing: re.Match[str] | None, whole: bool) -> bool:
    """Whether an opening tag begins thinking; `begin` is where other thinking ended."""
    before = text[max(begin, text.rfind("\n", 0, tag.start()) + 1) : tag.start()]
    if re.match(r"[ \t]*[:,)]", text[tag.end() :]):
        return False
    if not text[begin : tag.start()].strip() or not before.strip():
        return len(before) < 4 or not text[begin : tag.start()].strip()
    # In the middle of a line a tag is a mention, unless it ends its line and is closed on a line of its own.
    if not re.match(r"[ \t]*(?:\n|\Z)", text[tag.end() :]):
        return False
    if closing is None:
        return not whole
    return not text[text.rfind("\n", 0, closing.start()) + 1 : closing.start()].strip()


def _closing(text: str, at: int, kind: str) -> re.Match[str] | None:
    return next((tag for tag in _CLOSINGS[kind].finditer(text, at) if not _is_quoted(text, tag)), None)


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag is between quotes, or in inline code."""
    before, behind = text[: tag.start()][-1:], text[tag.end() : tag.end() + 1]
    if before and before == behind and before in "\"'`":
        return True
    first = text.rfind("\n", 0, tag.start()) + 1
    last = text.find("\n", tag.end())
    rest = text[tag.end() : last if last >= 0 else len(text)]
    return text.count("`", first, tag.start()) % 2 == 1 and "`" in rest


def _is_mention(text: str, tag: re.Match[str], begin: int) -> bool:
    """Whether a closing tag without an opening is spoken of, and ends nothing."""
    first = max(begin, text.rfind("\n", 0, tag.start()) + 1, tag.start() - _LINE)
    before, behind = text[first : tag.start()], text[tag.end() : tag.end() + 3]
    if _is_quoted(text, tag) or re.search(_OPEN, before, re.IGNORECASE):
        return True
    return bool(_MENTION_BEFORE.search(before) and _MENTION_BEHIND.match(behind))


def _dedent(code: str) -> str:
    from textwrap import dedent  # an import of rlm need not pay for it

    return dedent(code)


def _end_of_fence(text: str, opening: re.Match[str], whole: bool = True) -> int | None:
    """Where a fenced block ends that holds mentions only; None for a fence that may be part of thinking."""
    start = opening.end() + 1
    closing = re.compile(rf"{re.escape(opening['mark'])}+[ \t]*$", re.MULTILINE)
    ends = list(islice(closing.finditer(text, start), _FENCES_TRIED))
    is_code = _CODE_INFO.match(opening["info"]) is not None
    if is_code or not opening["info"].strip():
        for end in ends:
            if compiles(_dedent(text[start : end.start()])):
                return end.end()
        if compiles(_dedent(text[start:])):
            return len(text)
        if not whole and len(ends) < _FENCES_TRIED:
            return len(text)
    stop, behind = (ends[0].start(), ends[0].end()) if ends else (len(text), len(text))
    inside = text[start:stop]
    if ends and not is_code and not _TAGGED_FENCE.search(inside):
        return behind
    return None if (whole or ends) and _holds_end(inside) else behind


def _end_of_call(text: str, at: int, whole: bool) -> int | None:
    """The end of `FINAL(...)` by its parentheses; None where they do not balance, or thinking may end in it."""
    depth = 1
    for parenthesis in re.finditer(r"[()]", text[at:]):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            end = at + parenthesis.end()
            return None if _holds_end(text[at:end]) and _CALL.search(text, at, end) else end
    return None if whole else len(text)


def _holds_end(inside: str) -> bool:
    """Whether a closing tag is alone on its line, without an opening one before it."""
    depth = 0
    for tag in _TAG.finditer(inside):
        if tag["close"] is None:
            depth += 1
        elif depth:
            depth -= 1
        elif re.search(r"(?:\A|\n)[ \t]*\Z", inside[: tag.start()]) and re.match(
            r"[ \t]*(?:\n|\Z)", inside[tag.end() :]
        ):
            return True
    return False


def _split_channels(text: str) -> tuple[str, str] | None:
    """The text of the channel `final`, and of the others; None for a text without channels."""
    marks = list(_CHANNEL.finditer(text))
    if marks and text[: marks[0].start()].strip():  # the template wrote the first mark, or the text speaks of them
        marks = _outside_fences(text, [mark for mark in marks if not _is_quoted(text, mark)])
    if not marks:
        if _CHANNEL_OPEN.match(text.lstrip()):
            return "", text
        if "<|channel|>" not in text and (bare := _without_ends(text)) != text:
            return bare, ""
        marks = _glued_marks(text)
        if not marks:
            return ("", text) if _GLUED_START.match(text) and not compiles(text) else None
    parts = [("analysis", "", text[: marks[0].start()])]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = text[mark.end() : following.start() if following else len(text)]
        groups = mark.groupdict()
        to = f"{groups.get('role') or ''}{groups.get('to') or ''}" or part.split("\n")[0]
        parts.append((mark["name"], to, _without_ends(part)))
    said = [part for name, _, part in parts if name == "final"]
    if not said:  # commentary is for the user, unless it calls a tool
        said = [part for name, to, part in parts if name == "commentary" and "to=" not in to]
    thought = "\n\n".join(part.strip() for _, _, part in parts if part.strip() and part not in said)
    return "\n\n".join(said).lstrip("\n"), thought


def _without_ends(text: str) -> str:
    """The text without the tokens that end a turn, which some servers leave there."""
    kept = text.rstrip()
    while (end := next((each for each in _ENDS if kept.endswith(each)), None)) is not None:
        kept = kept.removesuffix(end).rstrip("\n")
    ends = text[len(kept) :]
    if not ends.strip() or kept[-1:] in (" ", "\t") or ("</s>" in ends and (not kept or "<s>" in kept)):
        return text
    return kept


def _glued_marks(text: str) -> list[re.Match[str]]:
    """Channels whose special tokens were left out: `analysisWe look.assistantfinal42`."""
    if "assistantfinal" not in text and not _GLUED_START.match(text):
        return []
    marks = _GLUED_BEHIND_SENTENCE if _GLUED_START.match(text) else _GLUED
    return _outside_fences(text, list(marks.finditer(text)))


def _outside_fences(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    spans = []
    at = 0
    while fence := _EVENT.search(text, at):
        at = fence.end()
        if fence["fence"] is not None and (end := _end_of_fence(text, fence)):
            inside = text[fence.end() : end]
            if _TAGGED_FENCE.search(inside) is None or compiles(_dedent(inside.rsplit("\n", 1)[0])):
                spans.append((fence.start(), end))
                at = end
    return [mark for mark in marks if not any(start <= mark.start() < end for start, end in spans)]
