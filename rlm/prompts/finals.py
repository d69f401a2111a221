"""Find the answer that a reply gives as text, with `FINAL(...)` or a similar form at the start of a line.

The closing parenthesis is found by the first rule that applies:

- the text up to it parses as the arguments of a Python call, and has a string, a bracket or a keyword
- parentheses balance, without those of smileys, of list items as in `1) one 2) two`, and in fenced blocks. If text on
  the same line closes one more, as in `FINAL(see step 3) and that)`, the last one counts
- it ends a paragraph

The text after it is prose, and not part of the answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from rlm.runners.claims import Claim, split_claims
from rlm.runners.syntax import hide_syntax_warnings

FINAL = re.compile(
    r"^[ \t]*(?P<mark>\*{1,3}|_{1,2}|`)?(?P<name>FINAL_VAR|FINAL|SUBMIT)[ \t]*[(（]"
    r"|\A\s*(?P<title>Final)\((?=.*\)\s*\Z)",
    re.MULTILINE,
)
_WORDS = (
    ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_SMILEY = re.compile(r"(?<=[\s(])[:;=]['\u2019-]?[()](?=[\s).,!?*]|\Z)")
_ITEM = re.compile(r"(?<!\S)(\d{1,3}|[A-Za-z]|[ivxIVX]{2,4})\)", re.ASCII)
_ALONE = re.compile(r"\\[()]|\[[^\[\]()\n,]{1,40},[^\[\]()\n,]{1,40}\)")
_SPACED = re.compile(r"[\w\])][ \t]+\(")
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(?:.*\n)*?[ \t]*\1[ \t]*$", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"[)][*_`.\s]*?(?=\n[ \t]*\n|\Z)")
_LINE_END = re.compile(r"[ \t]*[*_`.]*[ \t]*(?=\n|\Z)")

_TAKEN_BACK = re.compile(
    r"[\s*_`.,;:-]*(?:(?:would|could|might|may|is|was) (?:be )?(?:wrong|incorrect|a mistake|not\b|only a guess)"
    r"|(?:but |oh,? )?(?:wait|hold on|hmm+|oops|sorry|correction|scratch that|on second thought)\b"
    r"|no[,.:]|actually\b|(?:that|this)(?:'s| is| was| seems| looks) (?:wrong|incorrect|not)\b"
    r"|let me (?:re|double|check|fix)"
    r"|i (?:made a mistake|was wrong|miscounted|misread)\b)",
    re.IGNORECASE,
)
"""The beginning of text after an answer that takes the answer back."""

# A model that repeats itself writes thousands of `FINAL(`; one that never closes costs a search to the end.
FINALS_TRIED = 50
_ENDS_TRIED = 50
"""The closing parentheses to try for one answer; each costs a parse."""
_MOST_CHARACTERS = 200_000
"""Longest answer in words, in characters."""


@dataclass(frozen=True, slots=True)
class TextFinal:
    """A final answer written as text."""

    text: str
    """The answer, or the name of the variable that holds it."""
    is_name: bool
    """Whether `text` is the name of a variable: true for `FINAL_VAR`."""
    claims: tuple[Claim, ...] = ()
    """Its citations, as the model wrote them."""
    call: str = field(default="", compare=False)
    """The whole call, if it parses as Python; empty for words."""


def find_final(prose: str) -> TextFinal | None:
    """The first answer in a text that no later words take back, else the first one; None if there is none."""
    first: TextFinal | None = None
    for final, end in read_finals(prose):
        first = first or final
        if not _TAKEN_BACK.match(prose, end):
            return final
    return first


def read_finals(prose: str, tries: int = FINALS_TRIED) -> Iterator[tuple[TextFinal, int]]:
    """The answers of a text, each with the end of its call."""
    for match in islice(FINAL.finditer(prose), tries):
        end = _end_of_argument(prose, match.end())
        if end is None or not (inside := prose[match.end() : end].strip()):
            continue
        if (mark := match["mark"]) and not _LINE_END.match(prose[end + 1 :].removeprefix(mark)):
            continue  # a mention in bold, or in inline code
        name = match["name"] or "FINAL"
        call = f"{name}({inside})" if _call(inside) else ""
        if name == "SUBMIT":
            yield TextFinal(_parse_submit(inside), False, call=call), end + 1
            continue
        is_name = name == "FINAL_VAR"
        answer, claims = split_claims(re.sub(r"\A(?:final_)?answer[ \t]*=[ \t]*(?!=)", "", inside) if call else inside)
        yield TextFinal(answer.strip("\"'`") if is_name else _unquote(answer), is_name, claims, call), end + 1


def _end_of_argument(text: str, start: int) -> int | None:
    """The offset of the parenthesis that closes the one before `start`; None if there is none."""
    for closing in islice(re.finditer(r"\)", text[start:]), _ENDS_TRIED):
        end = start + closing.start()
        call = _call(text[start:end])
        if call is not None:
            inside = text[start:end]
            if not _is_words(call, inside) or (end not in _items(text, start) and "\n" not in inside.strip()):
                return end
            break
    if len(text) > start + _MOST_CHARACTERS:
        text = text[: start + _MOST_CHARACTERS]
    following = FINAL.search(text, start)
    own = text[: following.start()] if following else text
    plain = _hide_fences(text.replace("（", "(").replace("）", ")"), start)
    smileys = {match.end() - 1 for match in _SMILEY.finditer(plain, start)}
    items = _items(plain, start)
    balanced = _balance(plain, start, smileys, items)
    if balanced is not None:
        return _last_on_line(plain, balanced, smileys, items)
    for match in _PARAGRAPH_END.finditer(plain, start, len(own)):
        if match.start() not in smileys:
            return match.start()
    return _balance(plain, start, set(), set())


def _balance(text: str, start: int, smileys: set[int], items: set[int]) -> int | None:
    """The offset of the parenthesis that balances the one before `start`; `smileys` and `items` do not count."""
    depth = 1
    for match in re.finditer(r"[()]", text[start:]):
        at = start + match.start()
        if at in smileys or (depth == 1 and at in items):
            continue
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return at
    return None


def _last_on_line(text: str, end: int, smileys: set[int], items: set[int]) -> int:
    """`end`, or the parenthesis at the end of its line, else of its paragraph, if text goes on and closes one more."""
    rest = text[end + 1 :]
    if _LINE_END.match(rest):
        return end
    paragraph = re.split(r"\n[ \t]*\n", rest, maxsplit=1)[0]
    if (following := FINAL.search(paragraph)) is not None:
        paragraph = paragraph[: following.start()]
    for part in (paragraph.partition("\n")[0], paragraph):
        own = text[: end + 1 + len(part)]
        found, last = end, _balance(own, end + 1, smileys, items)
        while last is not None:
            found, last = last, _balance(own, last + 1, smileys, items)
        if found > end and re.fullmatch(r"[)][*_`.\s]*", own[found:]):
            return found
    return end


def _items(text: str, start: int) -> set[int]:
    """The offsets of parentheses without a partner.

    They belong to list items, if at least two have consecutive numbers or letters, to half-open intervals, or follow a
    backslash.
    """
    following = FINAL.search(text, start)
    own = text[start : following.start() if following else len(text)]
    found = [(match[1].lower(), start + match.end() - 1) for match in _ITEM.finditer(own)]
    marks = {mark for mark, _ in found}
    romans = {mark for mark in marks if set(mark) <= set("ivx")}
    if all(len(mark) == 1 for mark in romans):
        romans = set()
    alone = {start + match.end() - 1 for match in _ALONE.finditer(own)}
    return alone | {at for mark, at in found if mark in romans or marks & _neighbours(mark)}


def _neighbours(mark: str) -> set[str]:
    """The marks of the list items before and after this one."""
    if mark.isdecimal():
        return {str(int(mark) - 1), str(int(mark) + 1)}
    return {chr(ord(mark) - 1), chr(ord(mark) + 1)} if len(mark) == 1 else set()


def _hide_fences(text: str, start: int) -> str:
    """The text with spaces in place of the parentheses in fenced blocks."""
    return text[:start] + _FENCED.sub(lambda match: re.sub(r"[()]", " ", match[0]), text[start:])


def _call(inside: str) -> ast.Call | None:
    """The call with this text between its parentheses; None if it is not Python."""
    try:
        with hide_syntax_warnings():
            call = ast.parse(f"f({inside})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return call if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "f" else None


def _is_words(call: ast.Call, inside: str) -> bool:
    """Whether a call is words that happen to parse: a number, a word, words with operators, or words (in brackets)."""
    strings = any(isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) for node in ast.walk(call))
    nodes = [node for part in (*call.args, *call.keywords) for node in ast.walk(part)]
    calls = sum(isinstance(node, ast.Call) for node in nodes)
    return not strings and not call.keywords and calls <= len(_SPACED.findall(inside)) and all(
        isinstance(node, _WORDS) for node in nodes
    )  # fmt: skip


def _parse_submit(inside: str) -> str:
    """The answer in a SUBMIT: the value of one field, a dict of several, or the text itself if it is not Python."""
    call = _call(inside)
    try:
        fields = {key.arg: ast.literal_eval(key.value) for key in call.keywords} if call else {}
    except ValueError:
        return inside
    if not fields or (call and call.args) or None in fields:
        return _unquote(inside)
    return str(next(iter(fields.values())) if len(fields) == 1 else fields)


def _unquote(text: str) -> str:
    """The value of a string literal; other text as it is."""
    if len(text) > 1 and text[0] == "“" and text[-1] == "”" and not re.search("[“”]", text[1:-1]):
        return text[1:-1]
    if re.match(r"[rRbBuU]{0,2}[\"']|\(", text):
        try:
            with hide_syntax_warnings():
                value = ast.literal_eval(f"({text}\n)")
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
        if isinstance(value, str):
            return value
    return text
