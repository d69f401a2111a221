"""Separate a model's thinking from its answer, in replies that mix both in one text.

Endpoints without the parser for a model send its thinking in the text between marks. An opening mark counts at the
start of a line; without one, the text up to a closing mark is thinking too, since chat templates write the opening one.
Marks in a closed fenced block, inline code, quotes, a `FINAL(...)` or the middle of a sentence do not count.
"""

from __future__ import annotations

import re
from collections import deque

# The name of a tag: "think", "seed:think", "longcat_think", "antthinking", "inner_monologue"
_WORD = r"(?:\w+:|longcat_|inner_)?(?:ant)?(?:think|thinking|thoughts?|reasoning|monologue|scratchpad)(?:_process)?"
_END = r"(?:<\|(?:end|return|call)\|>\s*)?"  # of a message of gpt-oss: "<|end|>"
_MARKS = {  # family of models -> its opening and closing mark
    # "<think>" and "</think>": DeepSeek, Qwen, GLM, MiniMax, Nemotron, Seed, LongCat, and models tuned from them
    "xml": (rf"< ?{_WORD}(?:\s[^<>\n]*)?(?<!/)>(?![ \t]*[:,)])", rf"< ?/ ?{_WORD}\s*>"),
    "mistral": (r"\[(?:think|reasoning)\]", r"\[/(?:think|reasoning)\]"),  # "[THINK]" to "[/THINK]"
    "kimi": (r"◁think▷", r"◁/think▷"),
    "cohere": (r"<\|(?:start|begin)_(?:of_)?(?:thinking|thought)\|>", r"<\|end_(?:of_)?(?:thinking|thought)\|>"),
    "solar": (r"<\|think(?:ing)?\|>", r"<\|/think(?:ing)?\|>|<\|end\|>\s*<\|begin\|>assistant<\|content\|>"),
    "gemma": (r"<\|channel>thought\b", r"<channel\|>"),
    "medgemma": (r"<unused94>thought\b", r"<unused95>"),
    "harmony": (  # gpt-oss; calls of tools, which have a `to=`, are thinking
        # "<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>commentary to=python<|message|>"
        _END + r"(?:(?:<\|start\|>[^<\n]*)?<\|channel\|>(?:\s*analysis\b|[^<\n]*\bto=)"
        r"|<\|start\|>[^<\n]*\bto=[^<\n]*<\|channel\|>)"  # "<|start|>assistant to=python<|channel|>"
        r"[^<\n]*(?:<\|constrain\|>[^<\n]*)?(?:<\|message\|>|\Z)",  # "<|constrain|>json<|message|>", or cut before it
        # "<|end|><|start|>assistant<|channel|>final<|message|>", "<|channel|>commentary<|message|>"
        _END + r"(?:(?:<\|start\|>(?![^<\n]*\bto=)[^<\n]*|(?<!\w))"
        r"<\|channel\|>\s*(?:final|commentary)\b(?![^<\n]*\bto=)[^<\n]*|<\|start\|>assistant)<\|message\|>",
    ),
    # the same from servers that leave the special tokens out: "analysisWe need ...assistantfinal42"
    "bare": (r"\A\s*analysis(?-i:(?=[A-Z][\w']*[ ,]+\w))", r"(?<![a-zA-Z_\"'`/-])assistantfinal(?-i:(?![a-z_(=.]))"),
    "apriel": (r"(?!)", r"^\[BEGIN FINAL RESPONSE\]"),  # its chat template writes the opening
    "granite": (r"\A\s*Here(?:'s| is) my thought process:", r"^Here(?:'s| is) my response:"),
}  # fmt: skip
_CLOSINGS = {family: re.compile(closing, re.IGNORECASE | re.MULTILINE) for family, (_, closing) in _MARKS.items()}
_MARK = re.compile(  # an opening mark, or a closing one without it; granite's is a sentence, so it needs the opening
    "|".join(f"(?P<{family}>{opening})" for family, (opening, _) in _MARKS.items())
    + f"|(?P<closing>{'|'.join(closing for family, (_, closing) in _MARKS.items() if family != 'granite')})",
    re.IGNORECASE | re.MULTILINE,
)
_ANYWHERE = ("harmony", "bare", "granite")  # whose opening mark need not begin a line; the last two begin a text
_END_TOKENS = (
    "<|end|>", "<|return|>", "<|call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<end_of_turn>", "<eos>", "</s>", "<｜end▁of▁sentence｜>", "<|END_RESPONSE|>",
    "<|end_of_box|>", "<|end_of_solution|>", "[END FINAL RESPONSE]",
)  # fmt: skip
_ANSWER_OPENING = re.compile(r"\A\s*<\|(?:START_RESPONSE|begin_of_box|begin_of_solution)\|>")
_FENCE = re.compile(  # the line of a fence: "```python", "- ~~~", or "</think>```" behind a mark
    r"(?:^|(?<=[>\]▷]))[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$", re.MULTILINE
)
_GAP = re.compile(r"(?:[ \t]*\n)+|[ \t]*")  # the empty lines, else the spaces, behind a closing mark
_SENTENCE_BEFORE = re.compile(r"\w[ \t]+\Z")  # the text before a mark within a sentence
_SENTENCE_AFTER = re.compile(r"[ \t]+[a-z(]|[.,;:!?)'\"]")  # and behind it
_OPEN_ANSWER = re.compile(r"^[ \t]*\**(?:FINAL|SUBMIT)[ \t]*\([^()]*\Z", re.MULTILINE)  # "FINAL(the tag " before a mark
_LINE_CHARACTERS = 400  # of a line that are looked at, before and behind a mark


def split_thinking(text: str) -> tuple[str, str]:
    """The answer in the text of a reply, and the thinking in it. Takes linear time."""
    visible, thoughts = _split_at_marks(text) if _MARK.search(text) else (text, [])
    if visible.rstrip().endswith(_END_TOKENS):
        visible = _without_end_tokens(visible)
    thoughts = [_without_end_tokens(thought.strip()) for thought in thoughts]
    return _ANSWER_OPENING.sub("", visible), "\n\n".join(filter(None, thoughts))


def _split_at_marks(text: str) -> tuple[str, list[str]]:
    """The text outside the marks, and each text of thinking."""
    answer, thoughts = list[str](), list[str]()
    fences = _Fences(text)
    start = offset = 0  # `start`: of the text that is in neither list yet; `offset`: where the next mark is searched
    while mark := _MARK.search(text, offset):
        offset = mark.end()
        if fences.contain(mark, start) or _is_only_mentioned(text, mark, start):
            continue
        before = text[start : mark.start()]
        if mark.lastgroup == "closing":
            if thoughts and not text[offset:].strip():  # a stray mark at the end, after thinking that is closed
                answer.append(before)
            else:
                thoughts.append(before)
        else:
            closings = _CLOSINGS[str(mark.lastgroup)].finditer(text, mark.end())
            closing = next((match for match in closings if not _is_quoted(text, match, mark.end())), None)
            stop, offset = closing.span() if closing else (len(text), len(text))
            answer.append(before if before[-1:] in ("", "\n") else before + "\n")
            thoughts.append(text[mark.end() : stop])
        start = offset = next(_GAP.finditer(text, offset)).end()
    visible = "".join(answer) + text[start:]
    return visible.lstrip("\n") if thoughts else visible, thoughts


class _Fences:
    """Tells which marks of a text are in a closed fenced block. Reads the fences once, from the start."""

    def __init__(self, text: str) -> None:
        self._following = deque(_FENCE.finditer(text))
        self._opened: re.Match[str] | None = None  # the fence that opened the block around the last mark

    def contain(self, mark: re.Match[str], start: int) -> bool:
        """Whether the mark is in a closed block of the text from `start` on. To be called once a mark, in order."""
        while self._following and self._following[0].start() < mark.start():
            fence = self._following.popleft()
            self._opened = None if fence.start() < start or _closes(fence, self._opened) else fence
        if self._opened is None or self._opened.start() < start or not self._following:
            return False
        return _closes(self._following[0], self._opened)


def _closes(fence: re.Match[str], opened: re.Match[str] | None) -> bool:
    return opened is not None and not fence["info"].strip() and fence["mark"].startswith(opened["mark"])


def _is_only_mentioned(text: str, mark: re.Match[str], start: int) -> bool:
    """Whether a mark does not count, since the text from `start` on has it in quotes, an answer or a sentence."""
    near = text[max(start, mark.start() - _LINE_CHARACTERS) : mark.start()]
    if _is_quoted(text, mark, start) or _OPEN_ANSWER.search(near):
        return True
    if mark.lastgroup == "closing":
        return bool(_SENTENCE_BEFORE.search(near) and _SENTENCE_AFTER.match(text, mark.end()))
    return mark.lastgroup not in _ANYWHERE and near[near.rfind("\n") + 1 :].strip() != ""


def _is_quoted(text: str, mark: re.Match[str], start: int) -> bool:
    """Whether a mark is between quotes, or in inline code, of the text from `start` on."""
    before, after = text[max(0, mark.start() - 1) : mark.start()], text[mark.end() : mark.end() + 1]
    if before and before == after and before in "\"'`" and not text.startswith("```", mark.end()):
        return True
    if "<|message|>" in mark[0]:  # thinking may end within inline code
        return False
    line_start = max(start, text.rfind("\n", 0, mark.start()) + 1, mark.start() - _LINE_CHARACTERS)
    rest = text[mark.end() : mark.end() + _LINE_CHARACTERS].partition("\n")[0]
    return text.count("`", line_start, mark.start()) % 2 == 1 and "`" in rest


def _without_end_tokens(text: str) -> str:
    """The text without the end tokens at its end. A token behind a space, or a `</s>` that closes a tag, is content."""
    while end := next((item for item in _END_TOKENS if text.rstrip().endswith(item)), None):
        rest = text.rstrip().removesuffix(end)
        if rest[-1:] in (" ", "\t") or (end == "</s>" and (not rest or "<s>" in rest)):
            break
        text = rest.rstrip("\n")
    return text
