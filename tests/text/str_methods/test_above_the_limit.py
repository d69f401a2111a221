"""Every method of `str` once above the limit: lazy and equal, or `ContextTooLarge`. Makes the tables of the page.

`python -m tests.text.str_methods.test_above_the_limit` writes the tables into docs/semantics.md.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, regex
from monocontext.errors import ContextTooLarge
from monocontext.text.lazy_kinds import LazyItems

from .subject import read, stored

PAGE = Path(__file__).parents[3] / "docs" / "semantics.md"
MADE = re.compile(r"(<!-- made by tests/text/str_methods/test_above_the_limit.py -->\n).*?(\n<!-- end -->)", re.S)
TEXT = "  Ab İ\tab é.\nab Σ x\n" * 40 + "tail "
LIMIT = 100

CALLS: dict[str, str] = {
    "__add__": "t + 'x'", "__contains__": "'tail' in t", "__eq__": "t == t[:]", "__format__": "f'{t}'", "__ge__": "t >= 'x'",
    "__getitem__": "t[3:]", "__gt__": "t > 'x'", "__hash__": "hash(t)", "__iter__": "list(t)", "__le__": "t <= 'x'",
    "__len__": "len(t)", "__lt__": "t < 'x'", "__mod__": "t % ()", "__mul__": "t * 2", "__ne__": "t != 'x'",
    "__rmul__": "2 * t", "__str__": "str(t)", "capitalize": "t.capitalize()", "casefold": "t.casefold()",
    "center": "t.center(9999)", "count": "t.count('ab')", "encode": "t.encode()", "endswith": "t.endswith('tail ')",
    "expandtabs": "t.expandtabs()", "find": "t.find('tail')", "format": "t.format()", "format_map": "t.format_map({})",
    "index": "t.index('tail')", "join": "t.join(['a', 'b'])", "ljust": "t.ljust(9999)", "lower": "t.lower()",
    "lstrip": "t.lstrip()", "partition": "t.partition('tail')", "removeprefix": "t.removeprefix(' ')",
    "removesuffix": "t.removesuffix(' ')", "replace": "t.replace('ab', 'x')", "rfind": "t.rfind('Ab')",
    "rindex": "t.rindex('Ab')", "rjust": "t.rjust(9999)", "rpartition": "t.rpartition('tail')", "rsplit": "t.rsplit()",
    "rstrip": "t.rstrip()", "split": "t.split('\\n')", "splitlines": "t.splitlines()", "startswith": "t.startswith('  A')",
    "strip": "t.strip()", "swapcase": "t.swapcase()", "title": "t.title()", "translate": "t.translate({97: 'b'})",
    "upper": "t.upper()", "zfill": "t.zfill(9999)",
    **{name: f"t.{name}()" for name in dir(str) if name.startswith("is")},
}  # fmt: skip
"""For each attribute of `str` an expression over a text `t`."""
MORE = (
    "t[::2]", "t.split()", "t.split('ab')", "t.split('ab', 2)", "t.split('\\n')[-1]", "t.splitlines()[1:3]",
    "t.splitlines()[1:]", "t.split()[:-1]", "t.split('\\n')[::2]", "t.split()[5:][:3]", "t.split().copy()",
    "t.replace('a', 'b')", "t.replace('a', 'b', 1)", "t.lower().find('tail')", "f'{t:.20}'", "'-'.join(t)",
    "t.lines[3]", "next(t.chunks(9))", "t.upper().replace('AB', '').count('X')", "t.lower().split('ab')[5:9]",
)  # fmt: skip
"""Forms that go another way; compared where a `str` has them."""
LEFT_OUT = {"__repr__", "__getnewargs__", "__sizeof__", "__rmod__", "maketrans"}
KINDS = ("real", "lazy", "refused")


def kind_of(code: str) -> str:
    """How an expression ends above the limit, after its value was compared with that of the `str`."""
    names: dict[str, Any] = {"t": stored(TEXT, 50, LIMIT)}
    try:
        result = eval(code, names)
    except ContextTooLarge as error:
        result = error
    if isinstance(result, ContextTooLarge):
        assert str(result).partition(": ")[2], result  # it says what to write
        return "refused"
    if "t.lines" not in code and "t.chunks" not in code:
        assert read(result) == read(eval(code, {"t": TEXT})), code
    parts = result if isinstance(result, tuple | list) else [result]
    return "lazy" if any(isinstance(part, Monocontext | LazyItems) for part in parts) else "real"


def table() -> str:
    """The expressions of each kind."""
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for code in (*CALLS.values(), *MORE):
        kinds[kind_of(code)].append(code.replace("|", "\\|"))
    rows = [f"| {kind} | {', '.join(f'`{code}`' for code in sorted(codes))} |" for kind, codes in kinds.items()]
    return "\n".join(["| above the limit | |", "|---|---|", *rows])


OTHERWISE = {
    "isinstance(t, str)": "isinstance(str(t), str)", "type(t)": "type(str(t))", "repr(t)": "repr(t[:])",
    "str([t])": "str([t[:]])", "int(t)": "int(str(t))", "','.join([t])": "','.join([str(t)])",
    "'9123'.find(t)": "'9123'.find(str(t))", "json.loads(t)": "json.loads(str(t))", "re.findall('1', t)": "regex.findall('1', t)",
    "io.StringIO(t).read()": "t.file().read()", "unicodedata.normalize('NFC', t)": "unicodedata.normalize('NFC', str(t))",
    "ast.literal_eval(t)": "ast.literal_eval(str(t))", "numpy.array([t]).tolist()": "numpy.array([str(t)]).tolist()",
    "hasattr(large.split(), 'sort')": "hasattr(list(large.split()), 'sort')",
    "large.split() * 2": "list(large.split()) * 2",
}  # fmt: skip
"""Expressions that do not give what they give on a `str`, each with one that does. `large` is above its limit."""


def otherwise() -> str:
    """The table of what is not the same."""
    modules = {name: importlib.import_module(name) for name in ("ast", "io", "json", "numpy", "re", "unicodedata")}
    shared = {**modules, "regex": regex}
    text = "12"
    ours = {**shared, "t": stored(text), "large": stored("a b", limit=1)}
    rows = []
    for code, instead in OTHERWISE.items():
        expected = eval(code, {**shared, "t": text, "large": "a b"})
        assert eval(instead, ours) == expected, instead
        try:
            result = eval(code, ours)
        except Exception as error:  # the table says which
            result = type(error)
        assert result != expected, code
        shown = result.__name__ if isinstance(result, type) else repr(result).partition(" ")[0]
        rows.append(f"| `{code}` | `{shown}` | `{instead}` |")
    return "\n".join(["| not as on a `str` | here | write |", "|---|---|---|", *rows])


def test_every_attribute_of_str_is_tried() -> None:
    own = {name for name in dir(str) if getattr(str, name) is not getattr(object, name, None)}
    own -= {"__new__", "__doc__", "__getattribute__", "__init_subclass__", "__subclasshook__"}
    assert own == {*CALLS, *LEFT_OUT}


@pytest.mark.parametrize(
    "code", ["t.split()[10**30 : 10**31]", "t.split(' ')[10**30 : 10**31]", "t.split() == [*t.split(), None]"]
)
def test_above_the_limit_it_is_equal_also_at_the_edges(code: str) -> None:
    assert eval(code, {"t": stored(TEXT, 50, LIMIT)}) == eval(code, {"t": TEXT})


def test_above_the_limit_a_pattern_whose_literal_is_absent_has_no_match() -> None:
    assert not regex.findall(r"(?s)<doc>(.+?)</doc>", stored(TEXT, 50, LIMIT))
    with pytest.raises(ContextTooLarge):
        regex.findall(r"(?s)Ab(.+?)</doc>|x", stored(TEXT, 50, LIMIT))


def test_a_lazy_list_says_how_to_change_one_and_a_slice_of_it_where_it_begins() -> None:
    words = stored(TEXT, 50, LIMIT).split()
    with pytest.raises(AttributeError, match=r"no 'sort': change a real list, x.copy\(\) or sorted\(x\)"):
        words.sort()
    assert (" from 1;" in repr(words[1:-1]), " from 2;" in repr(words[2:])) == (True, True)


def page_with_tables(page: str) -> str:
    tables = iter((table(), otherwise()))
    return MADE.sub(lambda result: f"{result[1]}{next(tables)}{result[2]}", page)


def test_the_page_has_the_tables() -> None:
    """Each expression is evaluated and compared; the page says how it ends."""
    page = PAGE.read_text()
    assert page == page_with_tables(page)
    assert len(MADE.findall(page)) == 2
    assert len(MADE.sub("", page).split()) <= 1000


def test_a_text_in_a_match_statement() -> None:
    match stored(TEXT):
        case str():
            raise AssertionError
        case [first, *rest]:
            assert first + "".join(rest) == TEXT


def test_a_text_is_no_file() -> None:
    text = stored(TEXT, 50, LIMIT)
    assert not hasattr(text, "read")
    assert text.substring(2, 9) == TEXT[2:9]
    with pytest.raises(ContextTooLarge):
        text.substring(0, LIMIT + 1)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text()))
