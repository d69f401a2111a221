"""Find thinking between tags, such as `<think>...</think>`, and distinguish it from tags that a reply only mentions.

- An opening tag counts at the start of a line, and right after other thinking; it may have attributes.
- Thinking ends at the next closing tag, regardless of fences or answers in it; without one all the rest is thinking.
- A closing tag without an opening one ends thinking too, since chat templates write the opening tag: the text before
  it, up to earlier thinking, is thinking.
- Tags in a fenced block, in inline code, in quotes, in a `FINAL(...)` or in the middle of a sentence are mentions, and
  stay in the text. In a fence that is never closed, a closing tag still ends thinking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from rlm.models.syntax import compiles

_WORD = (
    r"(?:\w+:|longcat_|inner_)?(?:ant)?(?:think|thinking|thoughts?|reasoning|reason|monologue|scratchpad|reflection"
    r"|chain_of_thought)(?:_process)?"
)
_KINDS = {  # the opening and the closing tag of each kind
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
TAG = re.compile(f"{_OPEN}|(?P<close>{_CLOSE})", re.IGNORECASE)
_CLOSINGS = {kind: re.compile(closing, re.IGNORECASE) for kind, (_, closing) in _KINDS.items()}
_EVENT = re.compile(  # a place that changes how the text after it is read: a fence, a `FINAL(`, inline code, a tag
    r"(?P<fence>^[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$)"
    r"|(?P<final>^[ \t]*\**(?:FINAL|SUBMIT)[ \t]*\()"
    rf"|(?P<inline>(?<!`)`[^`\n]+`)|{TAG.pattern}",
    re.MULTILINE | re.IGNORECASE,
)
_EVENT_AFTER_THINKING = re.compile(_EVENT.pattern.replace(r"^[ \t]*", r"[ \t]*"), _EVENT.flags)
"""The same right after thinking, where the next character counts as the start of a line."""
_CODE_INFO = re.compile(r"[ \t{.]*(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?(?![\w-])", re.IGNORECASE)
_TAGGED_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*[\w{][^`\n]*$", re.MULTILINE)
_MENTION_BEFORE = re.compile(r"\w[ \t]+\Z")
_MENTION_AFTER = re.compile(r"[ \t]+[a-z(]|[.,;:!?)'\"]")
"""Text before and after a tag in the middle of a sentence."""
_GAP = re.compile(r"(?:[ \t]*\n)+|[ \t]*")
"""Space between a closing tag and the text after it."""
_FENCES_TRIED = 20
"""The most closing fences tried for one block; each costs a parse."""
_CALLS_TRIED = 50
"""A `FINAL(` that never closes costs a search to the end; a model that repeats itself writes thousands."""
_CALL = re.compile(r"^[ \t]*(?:FINAL|SUBMIT)[ \t]*\(", re.MULTILINE)
LINE_CHARACTERS = 400
"""The most characters of a line that are looked at before a tag."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A text with its thinking taken out."""

    answer: str
    thinking: list[str]
    """The parts of thinking, in order."""
    thinking_end: int
    """The offset at which the last thinking ends; 0 without any."""
    open_at: int | None
    """The offset of an opening tag whose thinking has no end yet; None if there is none."""


def scan(text: str, *, whole: bool = True, thought_before: bool = False) -> Scanned:
    """Separate the thinking between tags from the answer.

    `whole`: the text is complete, not a part of a stream. `thought_before`: the text follows thinking.
    """
    open_at: int | None = None
    answer: list[str] = []
    thinking: list[str] = []
    closings: dict[str, re.Match[str] | None] = {}
    calls = begin = at = 0  # text before `begin` is sorted; the search for the next event goes on at `at`
    while True:
        follows_thinking = at == begin and len(thinking) < _CALLS_TRIED
        event = (_EVENT_AFTER_THINKING.match(text, at) if follows_thinking else None) or _EVENT.search(text, at)
        if event is None:
            break
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
                closing = closings[kind] = _find_closing(text, at, kind)
            if not _opens(text, event, begin, closing, whole):
                continue
            before = text[begin : event.start()]
            answer.append(before if before[-1:] in ("", "\n") else before + "\n")
            thinking.append(text[at : closing.start() if closing else len(text)])
            begin = at = skip_gap(text, closing.end()) if closing else len(text)
            open_at = None if closing else event.start()
        elif not _is_mention(text, event, begin):
            if text[at:].strip() or not (thinking or thought_before):
                thinking.append(text[begin : event.start()])
            else:
                answer.append(text[begin : event.start()])
            begin = at = skip_gap(text, at)
    answer.append(text[begin:])
    answer_text = "".join(answer)
    return Scanned(answer_text.lstrip("\n") if thinking else answer_text, thinking, begin, open_at)


def skip_gap(text: str, at: int) -> int:
    """The offset of the first text after a closing tag that ends at `at`."""
    found = _GAP.match(text, at)
    return found.end() if found else at


def _opens(text: str, tag: re.Match[str], begin: int, closing: re.Match[str] | None, whole: bool) -> bool:
    """Whether an opening tag begins thinking, rather than being mentioned. `begin`: the end of earlier thinking."""
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


def _find_closing(text: str, at: int, kind: str) -> re.Match[str] | None:
    """The next closing tag of a kind that is not quoted."""
    return next((tag for tag in _CLOSINGS[kind].finditer(text, at) if not is_quoted(text, tag)), None)


def is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag is between quotes, or in inline code."""
    before, after = text[: tag.start()][-1:], text[tag.end() : tag.end() + 1]
    if before and before == after and before in "\"'`":
        return True
    first = text.rfind("\n", 0, tag.start()) + 1
    last = text.find("\n", tag.end())
    rest = text[tag.end() : last if last >= 0 else len(text)]
    return text.count("`", first, tag.start()) % 2 == 1 and "`" in rest


def _is_mention(text: str, tag: re.Match[str], begin: int) -> bool:
    """Whether a closing tag without an opening one is only mentioned, and ends nothing."""
    first = max(begin, text.rfind("\n", 0, tag.start()) + 1, tag.start() - LINE_CHARACTERS)
    before, after = text[first : tag.start()], text[tag.end() : tag.end() + 3]
    if is_quoted(text, tag) or re.search(_OPEN, before, re.IGNORECASE):
        return True
    return bool(_MENTION_BEFORE.search(before) and _MENTION_AFTER.match(after))


def _dedent(code: str) -> str:
    from textwrap import dedent  # an import of rlm need not pay for it

    return dedent(code)


def _end_of_fence(text: str, opening: re.Match[str], whole: bool = True) -> int | None:
    """The end of a fenced block whose tags are mentions; None where thinking may end inside the block."""
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
    stop, after = (ends[0].start(), ends[0].end()) if ends else (len(text), len(text))
    inside = text[start:stop]
    if ends and not is_code and not _TAGGED_FENCE.search(inside):
        return after
    return None if (whole or ends) and _ends_thinking(inside) else after


def _end_of_call(text: str, at: int, whole: bool) -> int | None:
    """The end of `FINAL(...)`, by its parentheses; None where they do not balance, or where thinking may end inside."""
    depth = 1
    for parenthesis in re.finditer(r"[()]", text[at:]):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            end = at + parenthesis.end()
            return None if _ends_thinking(text[at:end]) and _CALL.search(text, at, end) else end
    return None if whole else len(text)


def _ends_thinking(inside: str) -> bool:
    """Whether a text has a closing tag that is alone on its line and has no opening tag before it."""
    depth = 0
    for tag in TAG.finditer(inside):
        if tag["close"] is None:
            depth += 1
        elif depth:
            depth -= 1
        elif re.search(r"(?:\A|\n)[ \t]*\Z", inside[: tag.start()]) and re.match(
            r"[ \t]*(?:\n|\Z)", inside[tag.end() :]
        ):
            return True
    return False


def outside_fences(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """The matches that are outside all fenced blocks of code."""
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
