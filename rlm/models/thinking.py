"""Separate a model's thinking from its answer, in replies that mix both in one text.

Endpoints send thinking in a separate field, or, without the parser for the model, in the text: between tags
(`thinking_tags.py`), in the channels of gpt-oss (`channels.py`), or between words such as `Thinking...`. Marks around
the whole answer, and tokens that end a turn, are removed. A reply that is Python as a whole can only mention tags, in
its strings and comments. Each rule has a case in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from rlm.models.channels import BARE_START, END_TOKENS, split_channels
from rlm.models.lm import Reply
from rlm.models.syntax import compiles
from rlm.models.thinking_tags import LINE_CHARACTERS, TAG, scan, skip_gap

_BOX = re.compile(r"\s*<\|(?:START_RESPONSE|begin_of_box|begin_of_solution|start\|>assistant<\|message)\|>")
_BOX_END = re.compile(r"<\|(?:END_RESPONSE|end_of_box|end_of_solution)\|>\s*\Z")
"""Marks around the whole answer."""
_PREFACE = re.compile(
    r"\A\s*Thinking\.\.\.\n(?P<shown>.*?)^\.\.\.done thinking\.\s*"
    r"|\A\s*Here(?:'s| is) my thought process:(?P<thought>.*?)(?:^[ \t]*Here(?:'s| is) my response:[ \t]*\n?|\Z)"
    r"|\A(?P<steps>.*)^\[BEGIN FINAL RESPONSE\][ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)
"""Words around thinking: of `ollama run`, Granite and Apriel."""
_BEGUN = re.compile(
    rf"`?(?:{TAG.pattern})|`?<[|｜]|`?(?:< ?/? ?[\w:]*(?:\s[^<>\n]*)?|\[/?[a-z]*|◁/?[a-z]*)\Z"
    r"|<unused94>[a-z]*\Z|assistant(?:analysis|commentary|final)?|(?:assistan|assista|assist|assis|assi|ass|as|a)\Z",
    re.IGNORECASE,
)
"""A mark, or the beginning of one at the end of the text."""
_BARE_BEGUN = re.compile(r"\s*a(?:n(?:a(?:l(?:y(?:s(?:i(?:s|\Z)|\Z)|\Z)|\Z)|\Z)|\Z)|\Z)")
"""The beginning of a first `analysis` without tokens."""
_START = 80
"""Characters at the beginning of a reply that show whether it begins with a channel whose tokens were left out."""
_MARKS = (
    "<|channel|>", "<|message|>", "assistantfinal", "[BEGIN FINAL RESPONSE]", "...done thinking.", "<|START_RESPONSE|>",
    "<|begin_of_box|>", "<|begin_of_solution|>",
)  # fmt: skip
_MOST_WORK = 2_000_000
"""The most characters that are scanned again while a reply streams; after them the answer waits for the end."""


def separate_thinking(reply: Reply) -> Reply:
    """The reply with the thinking of its text moved to `thinking`, after the thinking that the endpoint sent.

    Only the text goes back to the model with the next turn, as vendors advise: the templates of Qwen, DeepSeek and
    gpt-oss drop earlier thinking or refuse it. Claude, the Responses API and MiniMax need it back within a chain of
    tool calls only, and turns of a run call no tools.
    """
    text, thought = split_thinking(reply.text)
    if not thought and text == reply.text:
        return reply
    return replace(reply, text=text, thinking="\n\n".join(filter(None, (reply.thinking, thought))))


def split_thinking(text: str, *, thought_before: bool = False) -> tuple[str, str]:
    """The answer in a reply, and its thinking. `thought_before`: the text follows thinking.

    Takes linear time, except for replies with many broken blocks of code.
    """
    if not _may_think(text, text[:_START]):
        return text, ""
    thought: list[str] = []
    if (preface := _PREFACE.match(text)) is not None:
        thought.append(preface["thought"] or preface["steps"] or preface["shown"] or "")
        text = text[preface.end() :].rstrip().removesuffix("[END FINAL RESPONSE]").rstrip()
    channels = split_channels(text)
    if channels is not None:
        text, first = channels
        thought.append(first)
    if TAG.search(text) and not _is_python(text):
        found = scan(text, thought_before=thought_before)
        text = found.answer
        thought += found.thinking
    if (box := _BOX.match(text)) is not None:
        text = _BOX_END.sub("", text[box.end() :])
    return text, "\n\n".join(filter(None, (part.strip() for part in thought)))


class AnswerStream:
    """Passes on the answer in a reply as it streams, without the thinking.

    The pieces add up to the answer of `split_thinking`, however the stream is cut, with one exception: text before a
    closing tag without an opening one is passed on before the tag arrives. A reply that keeps mentioning tags is passed
    on in one piece at its end.
    """

    def __init__(self, hear: Callable[[str], object]) -> None:
        self._hear = hear
        self._text = ""
        """Text since the last thinking."""
        self._passed = ""
        """The part of `_text` that was passed on."""
        self._thought = self._is_fresh = self._is_tagged = self._is_open = False
        self._work = 0

    def push(self, delta: str) -> None:
        """Take more of the reply."""
        self._text += delta
        if self._is_fresh:
            self._text = self._text[skip_gap(self._text, 0) :]
            self._is_fresh = not self._text
        known = len(self._text) - len(delta)
        line = max(0, self._text.rfind("\n", 0, known), known - LINE_CHARACTERS)
        if _may_think(self._text[line:], self._text[:_START]):
            self._is_tagged = True
        if not self._is_tagged:
            self._pass(self._text[: self._sure()])
        elif "\n" in delta and not _BOX.match(self._text):
            sure = self._text[: self._sure()]
            self._work += len(sure)
            if self._work < _MOST_WORK and not (self._is_open and not _may_think(self._text[line : len(sure)], "")):
                self._look(sure)

    def end(self) -> None:
        """Pass on the rest of the answer: the reply is complete."""
        self._pass(split_thinking(self._text, thought_before=self._thought)[0], sure=True)

    def _look(self, text: str) -> None:
        channels = split_channels(text)
        if channels is not None:
            self._is_open = not channels[0]
            self._pass(scan(channels[0], whole=False).answer)
            return
        found = scan(text, whole=False, thought_before=self._thought)
        self._is_open = found.open_at is not None
        if _BOX.match(found.answer):
            return
        self._pass(found.answer, sure=bool(found.thinking))
        if found.thinking and found.open_at is None:
            self._thought, self._is_tagged = True, False
            self._is_fresh = found.thinking_end == len(text)
            self._text, self._passed = self._text[found.thinking_end :], text[found.thinking_end :]

    def _sure(self) -> int:
        """The number of characters before any tag on the last line, complete or begun: no later text changes them."""
        line = max(self._text.rfind("\n") + 1, len(self._text) - LINE_CHARACTERS)
        if line == 0 and not self._thought and _BARE_BEGUN.match(self._text):
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


def _may_think(text: str, start: str) -> bool:
    """Whether a text, or a piece of it, can hold thinking. `start`: the beginning of the text."""
    return bool(
        TAG.search(text)
        or any(mark in text for mark in _MARKS)
        or text.rstrip().endswith(END_TOKENS)
        or BARE_START.match(start)
        or _PREFACE.match(start)
    )


def _is_python(text: str) -> bool:
    """Whether the text is a program: its tags can only be in strings and comments."""
    return compiles(re.sub(r"\A\s*(?:repl|python)[ \t]*\n|\n[ \t]*`+\s*\Z", "", text))
