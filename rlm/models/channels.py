"""Split a reply of gpt-oss by its channels: `final` is the answer, `analysis` and calls of tools are thinking.

Servers without a parser for them send the special tokens as text. Some leave the tokens out and keep the names:
`analysisWe look.assistantfinal42`.
"""

from __future__ import annotations

import re

from rlm.models.syntax import compiles
from rlm.models.thinking_tags import is_quoted, outside_fences

_CHANNEL = re.compile(
    r"(?:<\|(?:end|return|call)\|>\s*)?(?:<\|start\|>[\w.]*(?P<role>[^<\n]*))?"
    r"<\|channel\|>\s*(?P<name>analysis|commentary|final)\b(?P<to>[^<\n]*)(?:<\|constrain\|>[^<\n]*)?<\|message\|>"
)
_UNFINISHED = re.compile(r"(?:<\|start\|>[\w.]*[^<\n]*)?<\|channel\|>\s*(?:analysis|commentary)?\b[^<\n]*\Z")
"""A reply that ended in the header of a channel."""
END_TOKENS = (
    "<|end|>", "<|return|>", "<|call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<|user|>", "<|observation|>", "<end_of_turn>", "<eos>", "</s>", "<｜end▁of▁sentence｜>",
)  # fmt: skip
"""Tokens that end a turn, of many models: some servers leave them in the text."""
_BARE = re.compile(r"(?<![\w\"'`/-])assistant(?P<name>analysis|commentary|final)(?=[A-Z0-9`{\[*#<\n]|\Z)")
_BARE_AFTER_SENTENCE = re.compile(r"(?<![A-Za-z_\"'`/-])assistant(?P<name>analysis|commentary|final)(?![_(=.])")
"""The name of a channel without its tokens, in a reply that begins with such a name; `_BARE` is for other replies."""
BARE_START = re.compile(r"\s*analysis(?=[A-Z][\w']*[ ,]+[A-Za-z])")


def split_channels(text: str) -> tuple[str, str] | None:
    """The answer, from the channel `final`, and the thinking, from the others; None for a text without channels."""
    marks = list(_CHANNEL.finditer(text))
    if marks and text[: marks[0].start()].strip():  # the template wrote the first mark, or the text mentions marks
        marks = outside_fences(text, [mark for mark in marks if not is_quoted(text, mark)])
    if not marks:
        if _UNFINISHED.match(text.lstrip()):
            return "", text
        if "<|channel|>" not in text and (bare := without_end_tokens(text)) != text:
            return bare, ""
        marks = _bare_marks(text)
        if not marks:
            return ("", text) if BARE_START.match(text) and not compiles(text) else None
    parts = [("analysis", "", text[: marks[0].start()])]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = text[mark.end() : following.start() if following else len(text)]
        groups = mark.groupdict()
        to = f"{groups.get('role') or ''}{groups.get('to') or ''}" or part.split("\n")[0]
        parts.append((mark["name"], to, without_end_tokens(part)))
    answer = [part for name, _, part in parts if name == "final"]
    if not answer:  # commentary is for the user, unless it calls a tool
        answer = [part for name, to, part in parts if name == "commentary" and "to=" not in to]
    thinking = "\n\n".join(part.strip() for _, _, part in parts if part.strip() and part not in answer)
    return "\n\n".join(answer).lstrip("\n"), thinking


def without_end_tokens(text: str) -> str:
    """The text without the end-of-turn tokens at its end."""
    kept = text.rstrip()
    while (end := next((each for each in END_TOKENS if kept.endswith(each)), None)) is not None:
        kept = kept.removesuffix(end).rstrip("\n")
    ends = text[len(kept) :]
    if not ends.strip() or kept[-1:] in (" ", "\t") or ("</s>" in ends and (not kept or "<s>" in kept)):
        return text
    return kept


def _bare_marks(text: str) -> list[re.Match[str]]:
    """The names of channels whose special tokens were left out."""
    if "assistantfinal" not in text and not BARE_START.match(text):
        return []
    marks = _BARE_AFTER_SENTENCE if BARE_START.match(text) else _BARE
    return outside_fences(text, list(marks.finditer(text)))
