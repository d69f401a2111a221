"""Run an idiom, code about `context` as models write it, on a `str` and on a text that stands for it, and compare.

`idioms.txt` has one idiom a paragraph: an expression, or statements that assign `out`. Names in capitals are slots:
`NEEDLE`, `LETTER`, `SEP` and `PATTERN` become strings that may be in the text, `N`, `M` and `STEP` numbers.

A comment in the first line says what differs: `# TypeError` (a function demands a real `str`), `# other words` (of the
same error), `# above the limit` (there a lazy list cannot be changed, and a lazy value has a short `repr`).
"""

from __future__ import annotations

import builtins
import io
import re
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.text.lazy_kinds import LazyItems
from monocontext.text.monocontext import MATERIALIZE_LIMIT
from monocontext.text.namespace import NamespacePatch

IDIOMS = Path(__file__).with_name("idioms.txt").read_text("utf-8").strip("\n").split("\n\n")
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
SHOWN = 20_000
"""The characters of a text that `print` shows."""

TEXTS = {
    "ascii": "Line 1: the quick brown fox\nline 2: jumps over, the lazy dog. key=val a=b\n\n  indented line 3\n"
    '{"id": 4}\nname,age\nAnn,31\nERROR line 5 failed (code 42)\n',
    "emoji": 'Line 😀 one 👩‍👩‍👧 two 👍🏽\nline 漢字 ΑΣ Σ. İstanbul straße ﬁ\n"quoted" é line 3 ½ ٣\n',
    "line ends": "Line one\r\nline two, a\r\n\r\nlast line\rold mac\x0bvt\x0cff\x1cfs\x85nel\u2028ls\n",
    "no final newline": "Line a no final newline: 12 34",
    "empty": "",
    "combining": "e\u0301 a\u0300\u0316 line n\u0303 \u0301leading\nq\u0307\u0323 line 2 \u200d\n",
    "escapes": "Line \\ud800 escaped \\udfff and \\x00 {0} {} %s %d\n\ttab\tline\n$x ${y}\n",
    "spaces": " \t\n \u3000\n",
    "number": "42",
    "json": '{"a": [1, 2, "line"], "b": {"c": null}}',
    "format": "%s",
    "braces": "{} {a}",
}


@dataclass(frozen=True)
class Outcome:
    """What an idiom did, as far as its writer can see."""

    stdout: str
    value: Any
    """The kind and the value of `out`."""
    error: str
    """The name of the error's type; empty for none."""
    message: str


def fill(idiom: str, text: str, random: Random) -> str:
    """The idiom with a choice for each of its slots."""
    start = random.randrange(len(text) + 1)
    slots = {
        "NEEDLE": repr(random.choice([text[start : start + random.randrange(1, 6)], "line", "zz", "\n", "é"])),
        "LETTER": repr(random.choice([*text[start : start + 1], "a", "\n", " ", "\U0001f600"])),
        "SEP": repr(random.choice([text[start : start + 2], "\n", " ", ", ", "\r\n", "line"]) or " "),
        "PATTERN": repr(random.choice(_PATTERNS)),
        "STEP": str(random.choice([1, 2, 3, 7, 100, -1, -2])),
        "N": str(random.randrange(-len(text) - 2, len(text) + 3)),
        "M": str(random.randrange(-len(text) - 2, len(text) + 3)),
    }
    return re.sub(r"\b(NEEDLE|LETTER|SEP|PATTERN|STEP|N|M)\b", lambda slot: slots[slot[0]], idiom)


_PATTERNS = (
    r"\w+", r"line (\d)", r"(?i)line", r"^\w+", r"(?m)^\s*(\S+)", r"(?s).+", r".*?\n", r"[^\x00-\x7f]", r"\d+|[A-Z]\w*",
    r"(\w)(\w)?", r"\b\w{4}\b", r"(?P<key>\w+)=(?P<value>\w+)", r"$", r"(?m)$", r"\s+", "", r"(.)\1", r"(?<=l)ine",
    r"\n+", r"\S+(?=\s)", r"(?:a|an)+", r"\A.", r"[.,:]\s",
)  # fmt: skip


def outcome(code: str, context: Any) -> Outcome:
    """Run code as a host does that makes its namespace of the kit, and nothing else."""
    names: dict[str, Any] = {"__name__": "cell", "__builtins__": vars(builtins) | NamespacePatch().names}
    names |= {"context": context, "out": None}
    stdout = io.StringIO()
    with redirect_stdout(stdout), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                names["out"] = eval(compile(code, "<cell>", "eval", dont_inherit=True), names)
            except SyntaxError:
                exec(compile(code, "<cell>", "exec", dont_inherit=True), names)
            return Outcome(stdout.getvalue(), _kind_and_value(names["out"]), "", "")
        except Exception as error:  # compared, whatever it is
            if any(getattr(item, "is_large", False) for item in error.args):
                error = ContextTooLarge("the words of an error are too large")
            return Outcome(stdout.getvalue(), None, type(error).__name__, _ADDRESS.sub("", str(error)))


def _kind_and_value(value: Any) -> Any:
    if isinstance(value, Monocontext):
        return "str", "".join(value.chunks())
    if isinstance(value, str):
        return type(value).__name__, str(value)
    if isinstance(value, LazyItems):
        return "list", [_kind_and_value(item) for item in value]  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        return type(value).__name__, [(_kind_and_value(key), _kind_and_value(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [_kind_and_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(repr(_kind_and_value(item)) for item in value)
    return type(value).__name__, _ADDRESS.sub("", repr(value))


def difference(code: str, text: str, context: Any) -> str:
    """What an idiom does otherwise on a context than on its text, beyond what its first line says; empty for nothing.

    Where the context has a small limit, `ContextTooLarge` is no difference.
    """
    expected, result = outcome(code, text), outcome(code, context)
    note = code.partition("\n")[0].partition("# ")[2]
    if context._limit < MATERIALIZE_LIMIT and (
        result.error in ("ContextTooLarge", "Unhashable") or note == "above the limit"
    ):
        return ""
    if note == "TypeError" and result.error == "TypeError":
        return ""
    same_words = note == "other words" or result.message.replace("Monocontext", "str") == expected.message
    same = (result.stdout[:SHOWN], result.value, result.error) == (
        expected.stdout[:SHOWN],
        expected.value,
        expected.error,
    )
    return "" if same and same_words else f"{code}\n  expected {expected}\n  found    {result}"
