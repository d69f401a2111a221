"""Separate a model's thinking from its answer, in replies that mix both in one text.

Endpoints send thinking in a field of its own, or, without the parser for the model, in the text between marks. Each
rule has a case in the tests:

- An opening mark counts at the start of a line, and right after other thinking. Thinking ends at its closing mark, or
  with the text.
- A closing mark without an opening one ends thinking too, since chat templates write the opening one: the text before
  it, up to earlier thinking, is thinking.
- Marks in a closed fenced block, in inline code, in quotes, in a `FINAL(...)` or in the middle of a sentence are only
  mentioned.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from rlm.models.lm import Reply

_WORD = r"(?:\w+:|longcat_|inner_)?(?:ant)?(?:think|thinking|thoughts?|reasoning|monologue|scratchpad)(?:_process)?"
_END = r"(?:<\|(?:end|return|call)\|>\s*)?"
_MARKS = {  # opening and closing mark
    # DeepSeek, Qwen, GLM, MiniMax, Nemotron, Seed, LongCat, and models tuned from them
    "xml": (rf"< ?{_WORD}(?:\s[^<>\n]*)?(?<!/)>(?![ \t]*[:,)])", rf"< ?/ ?{_WORD}\s*>"),
    "mistral": (r"\[(?:think|reasoning)\]", r"\[/(?:think|reasoning)\]"),
    "kimi": (r"◁think▷", r"◁/think▷"),
    "cohere": (r"<\|(?:start|begin)_(?:of_)?(?:thinking|thought)\|>", r"<\|end_(?:of_)?(?:thinking|thought)\|>"),
    "solar": (r"<\|think(?:ing)?\|>", r"<\|/think(?:ing)?\|>|<\|end\|>\s*<\|begin\|>assistant<\|content\|>"),
    "gemma": (r"<\|channel>thought\b", r"<channel\|>"),
    "medgemma": (r"<unused94>thought\b", r"<unused95>"),
    # gpt-oss: `analysis` and calls of tools, which have `to=` in their header, are thinking
    "harmony": (
        _END + r"(?:(?:<\|start\|>[^<\n]*)?<\|channel\|>(?:\s*analysis\b|[^<\n]*\bto=)"
        r"|<\|start\|>[^<\n]*\bto=[^<\n]*<\|channel\|>)[^<\n]*(?:<\|constrain\|>[^<\n]*)?(?:<\|message\|>|\Z)",
        _END + r"(?:(?:<\|start\|>(?![^<\n]*\bto=)[^<\n]*|(?<!\w))"
        r"<\|channel\|>\s*(?:final|commentary)\b(?![^<\n]*\bto=)[^<\n]*|<\|start\|>assistant)<\|message\|>",
    ),
    # the same from servers that leave the special tokens out
    "bare": (r"\A\s*analysis(?-i:(?=[A-Z][\w']*[ ,]+\w))", r"(?<![a-zA-Z_\"'`/-])assistantfinal(?-i:(?![a-z_(=.]))"),
    "apriel": (r"(?!)", r"^\[BEGIN FINAL RESPONSE\]"),
    "granite": (r"\A\s*Here(?:'s| is) my thought process:", r"^Here(?:'s| is) my response:"),
}  # fmt: skip
_CLOSINGS = {kind: re.compile(closing, re.IGNORECASE | re.MULTILINE) for kind, (_, closing) in _MARKS.items()}
_MARK = re.compile(
    "|".join(f"(?P<{kind}>{opening})" for kind, (opening, _) in _MARKS.items())
    + f"|(?P<closing>{'|'.join(closing for kind, (_, closing) in _MARKS.items() if kind != 'granite')})",
    re.IGNORECASE | re.MULTILINE,
)
_ANYWHERE = ("harmony", "bare", "granite")
"""Kinds whose opening mark need not begin a line; two of them begin the text."""
_END_TOKENS = (
    "<|end|>", "<|return|>", "<|call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<end_of_turn>", "<eos>", "</s>", "<｜end▁of▁sentence｜>", "<|END_RESPONSE|>",
    "<|end_of_box|>", "<|end_of_solution|>", "[END FINAL RESPONSE]",
)  # fmt: skip
"""Marks of the end that some servers leave in the text."""
_BOX = re.compile(r"\s*<\|(?:START_RESPONSE|begin_of_box|begin_of_solution)\|>")
"""A mark before the whole answer."""
_BEGUN = re.compile(r"[<\[◁]")
"""What may begin a mark at the end of the text."""
_BARE_CHARACTERS = 40
"""A reply that begins with `analysis` shows within this length whether that is a mark."""
_FENCE = re.compile(
    r"(?:^|(?<=[>\]▷]))[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$", re.MULTILINE
)
_GAP = re.compile(r"(?:[ \t]*\n)+|[ \t]*")
"""Space between a closing mark and the text after it."""
_SENTENCE = re.compile(r"\w[ \t]+\Z"), re.compile(r"[ \t]+[a-z(]|[.,;:!?)'\"]")
"""The text before and after a mark in the middle of a sentence."""
_ANSWER = re.compile(r"^[ \t]*\**(?:FINAL|SUBMIT)[ \t]*\([^()]*\Z", re.MULTILINE)
"""The text before a mark in an answer."""
_LOOK_CHARACTERS = 400
"""The most characters of a line that are looked at before a mark."""


def separate_thinking(reply: Reply) -> Reply:
    """The reply with the thinking of its text moved to `thinking`, after the thinking that the endpoint sent.

    Only the text goes back to the model with the next turn, as vendors advise.
    """
    text, thought = split_thinking(reply.text)
    if text == reply.text:
        return reply
    return replace(reply, text=text, thinking="\n\n".join(filter(None, (reply.thinking, thought))))


def split_thinking(text: str, *, thought_before: bool = False) -> tuple[str, str]:
    """The answer in a reply, and its thinking, in linear time. `thought_before`: the text follows thinking."""
    answer: list[str] = []
    thinking: list[str] = []
    fences = deque[re.Match[str]]()
    opened = None  # the fence of the block around the mark
    begin = offset = 0  # the text before `begin` is sorted
    while mark := _MARK.search(text, offset):
        fences = fences if offset else deque(_FENCE.finditer(text))
        offset = mark.end()
        while fences and fences[0].start() < mark.start():
            fence = fences.popleft()
            opened = None if fence.start() < begin or _closes(fence, opened) else fence
        before = text[begin : mark.start()]
        in_block = opened and opened.start() >= begin and fences and _closes(fences[0], opened)
        if in_block or _is_quoted(text, mark, begin) or _ANSWER.search(before[-_LOOK_CHARACTERS:]):
            continue
        kind = str(mark.lastgroup)
        if kind == "closing":
            if not _is_in_sentence(text, mark, begin):
                is_answer = (thinking or thought_before) and not text[offset:].strip()
                (answer if is_answer else thinking).append(before)
                begin = offset = _skip_gap(text, offset)
        elif kind in _ANYWHERE or not before[before.rfind("\n", -_LOOK_CHARACTERS) + 1 :].strip():
            closing = _find_closing(text, offset, kind)
            answer.append(before if before[-1:] in ("", "\n") else before + "\n")
            thinking.append(text[offset : closing.start() if closing else len(text)])
            begin = offset = _skip_gap(text, closing.end()) if closing else len(text)
    said = "".join(answer) + text[begin:]
    said = _without_end_tokens(said.lstrip("\n") if thinking else said)
    thinking = [_without_end_tokens(part.strip()) for part in thinking]
    if box := _BOX.match(said):
        said = said[box.end() :]
    return said, "\n\n".join(filter(None, thinking))


class AnswerStream:
    """Passes on the answer in a reply as it streams, without the thinking.

    The pieces add up to the answer of `split_thinking`, however the stream is cut, with one exception: text before a
    closing mark without an opening one is passed on before the mark arrives. After any other mark behind the beginning,
    the rest is passed on at the end.
    """

    def __init__(self, hear: Callable[[str], object]) -> None:
        self._hear = hear
        self._since: list[str] = []
        """The text since the last thinking."""
        self._waiting = ""
        """The end of it, which was not passed on."""
        self._passed: list[str] = []
        self._thinks = ""
        """The kind of mark that opened the thinking under way; empty if none is."""
        self._thought = self._is_fresh = self._is_held = False

    def push(self, delta: str) -> None:
        """Take more of the reply."""
        self._since.append(delta)
        if not self._is_held:
            self._waiting += delta
            while self._step():
                pass

    def end(self) -> None:
        """Pass on the rest of the answer: the reply is complete."""
        said, passed = split_thinking("".join(self._since), thought_before=self._thought)[0], "".join(self._passed)
        if said.startswith(passed):
            self._pass(said[len(passed) :])
        elif said and not passed.startswith(said):  # the text passed on so far was thinking
            self._pass("\n" + said)

    def _step(self) -> bool:
        """Handle what waits, up to the next mark. Whether there is more to handle."""
        text = self._waiting
        if self._thinks:
            closing = _find_closing(text, 0, self._thinks)
            if closing and closing.end() == len(text):  # the next character may be a quote, and the mark a mention
                return False
            self._waiting = text[closing.end() :] if closing else text[-2 * _LOOK_CHARACTERS :]
            if closing:
                self._thinks, self._thought, self._is_fresh = "", True, True
            return closing is not None
        if self._is_fresh and text.strip():
            text = text[_skip_gap(text, 0) :]
            self._since, self._passed, self._is_fresh = [text], [], False
        if self._is_fresh or (not self._passed and _may_be_bare(text)):
            return False
        mark = _MARK.search(text)
        if mark is None:
            match = _BEGUN.search(text, text.rstrip().rfind("\n") + 1)
            sure = max(match.start(), len(text) - _LOOK_CHARACTERS) if match else len(text)
            self._pass(text[:sure])
            self._waiting = text[sure:]
        elif mark.lastgroup == "closing" or self._passed or text[: mark.start()].strip():
            self._is_held = True
        else:
            self._thinks, self._waiting = str(mark.lastgroup), text[mark.end() :]
        return bool(self._thinks)

    def _pass(self, piece: str) -> None:
        if piece:
            self._passed.append(piece)
            self._hear(piece)


def _may_be_bare(text: str) -> bool:
    """Whether a text may begin with a mark of which only the words are left."""
    begin = text.lstrip()
    return len(text) < _BARE_CHARACTERS and (
        "analysis".startswith(begin[:8]) or "assistantfinal".startswith(begin[:14])
    )


def _find_closing(text: str, at: int, kind: str) -> re.Match[str] | None:
    """The next closing mark of a kind that is not quoted."""
    return next((mark for mark in _CLOSINGS[kind].finditer(text, at) if not _is_quoted(text, mark, at)), None)


def _closes(fence: re.Match[str], opened: re.Match[str] | None) -> bool:
    return opened is not None and not fence["info"].strip() and fence["mark"].startswith(opened["mark"])


def _is_quoted(text: str, mark: re.Match[str], begin: int) -> bool:
    """Whether a mark is between quotes, or in inline code, of the text from `begin` on."""
    before, after = text[: mark.start()][-1:], text[mark.end() : mark.end() + 1]
    if before and before == after and before in "\"'`":
        return True
    if "<|message|>" in mark[0]:  # thinking may end in half of some inline code
        return False
    first = max(begin, text.rfind("\n", 0, mark.start()) + 1, mark.start() - _LOOK_CHARACTERS)
    rest = text[mark.end() : mark.end() + _LOOK_CHARACTERS].partition("\n")[0]
    return text.count("`", first, mark.start()) % 2 == 1 and "`" in rest


def _is_in_sentence(text: str, mark: re.Match[str], begin: int) -> bool:
    """Whether a closing mark stands in the middle of a sentence."""
    before, after = _SENTENCE
    start = max(begin, mark.start() - _LOOK_CHARACTERS)
    return bool(before.search(text[start : mark.start()]) and after.match(text, mark.end()))


def _skip_gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _without_end_tokens(text: str) -> str:
    kept = text.rstrip()
    if not kept.endswith(_END_TOKENS):
        return text
    while end := next((item for item in _END_TOKENS if kept.endswith(item)), None):
        rest = kept.removesuffix(end)
        if rest[-1:] in (" ", "\t") or (end == "</s>" and (not rest or "<s>" in rest)):
            break
        kept = text = rest.rstrip("\n")
    return text
