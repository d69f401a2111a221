"""The names of the kit, one by one: what each gives for a lazy value, and that it is the builtin for any other."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from namespace_hosts import run

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.text.context_file import ContextFile
from monocontext.text.namespace import NamespacePatch

PLAIN = (
    "isinstance('a', str), isinstance(3, (int, str)), isinstance('a', str | None), isinstance(str, type)",
    "type('a') is str, type('a') == str, type(3) is int, type(str) is type, type(type), type('a').__name__",
    "type('A', (), {'x': 1}).x, str(3), str(b'a', 'utf-8'), str(), str.join('-', 'ab'), list(map(str, [1, 2]))",
    "issubclass(bool, int), issubclass(type('a'), str), {str: 1}[type('a')], {type('a'): 1}[str], str in {str, int}",
    "repr(str), f'{str}', str.__name__, sorted([2, 10], key=str), [type(x) in (str, bytes) for x in ('', b'', 3)]",
    "str | None, callable(str), str.maketrans('a', 'b'), 'ab'.translate({97: 'c'})",
)
"""Expressions that give what they give without the kit, but for the objects named `str` and `type`."""
CLASSES = """
from enum import Enum
from dataclasses import dataclass, fields
from typing import Optional, get_type_hints
from collections import defaultdict
class Color(str, Enum):
    RED = "red"
class Name(str):
    pass
class Meta(type):
    pass
class Made(metaclass=Meta):
    pass
@dataclass
class Row:
    name: str
    other: Optional[str] = None
found = defaultdict(str)
print(Color("red").value, isinstance(Name("a"), str), type(Made).__name__, Row("a"), [f.name for f in fields(Row)])
print(found["x"] == "", isinstance(Made, type), Color.RED == "red", type(Name("a")).__name__)
import numpy as np
print(np.array([1, 2]).astype(str).tolist(), np.array(["a"], dtype=str).tolist())
"""


@pytest.mark.parametrize("code", PLAIN)
def test_plain_values_are_as_without_the_kit(code: str) -> None:
    ran = run(f"print(repr(({code})))")
    assert (ran.stdout.strip(), ran.error) == (repr(eval(code)), "")


def test_classes_of_cells_can_use_str_and_type() -> None:
    ran = run(CLASSES)
    assert (ran.error, ran.stdout.splitlines()) == ("", [
        "red True Meta Row(name='a', other=None) ['name', 'other']", "True True True Name", "['1', '2'] ['a']",
    ]), ran.traceback  # fmt: skip


@pytest.mark.parametrize("limit", ["default", "small"])
def test_lazy_values_pass_for_real_ones(contexts: dict[str, Monocontext], limit: str) -> None:
    code = """
print(isinstance(context, str), isinstance(context, (list, dict)), isinstance(context, str | None))
print(type(context) is str, type(context).__name__, isinstance(context, list), str(context)[:3] == context[:3])
lines = context.split("\\n")
print(isinstance(lines, list), type(lines) is list, isinstance(lines, str), type(lines[0]) is str, len(lines + ["x"]))
"""
    ran = run(code, contexts[limit])
    assert ran.stdout == run(code, str(contexts["default"])).stdout, ran.traceback


def test_the_names_are_picklable_and_refused_as_classes() -> None:
    kit = NamespacePatch()
    assert pickle.loads(pickle.dumps(kit.names["str"])) is str
    assert isinstance("a", kit.names["str"])
    assert not isinstance(3, kit.names["str"])
    assert run("match 'a':\n    case str(): print('a str')").error == "TypeError"


def test_modules_are_ours_in_the_namespace_alone() -> None:
    item, other = NamespacePatch().names["__import__"], NamespacePatch().names["__import__"]
    for name in ("re", "json", "io", "csv"):
        ours = item(name)
        assert ours is item(name) is not other(name)
        assert ours is not sys.modules[name]
        assert {"__name__", *dir(sys.modules[name])} <= {*dir(ours), *vars(ours)}
    assert item("os") is sys.modules["os"]
    assert item("json.decoder").decoder is json.decoder
    assert item("json.decoder", fromlist=("JSONDecoder",)) is sys.modules["json.decoder"]
    assert run("import re\nre.findall = 3\nimport re as again\nprint(again.findall)").stdout == "3\n"
    assert callable(re.findall)
    assert run("import json\njson.nothing").message == "module 'json' has no attribute 'nothing'"


def test_output_before_a_refusal_is_kept(contexts: dict[str, Monocontext]) -> None:
    ran = run("print('before')\nprint(f'{context}')", contexts["small"])
    assert (ran.stdout, ran.error) == ("before\n", "ContextTooLarge")


def test_what_needs_the_whole_text_says_so_above_the_limit(contexts: dict[str, Monocontext]) -> None:
    for code, instead in (
        ("import json; json.loads(context)", "for line in context.lines: json.loads(line)"),
        ("import json; json.dumps([context])", "slice context"),
        ("import io; io.StringIO(context).read()", "read(n) in pieces"),
        ("import io; io.StringIO(context).readlines()", "iterate the file"),
        ("f'{context}'", "context[a:b]"),
    ):
        ran = run(code, contexts["small"])
        assert (ran.error, instead in ran.message) == ("ContextTooLarge", True), (code, ran)


def test_files_take_lazy_texts(contexts: dict[str, Monocontext], text: str, tmp_path: Path) -> None:
    ran = run(
        "with open(path, 'w', newline='') as f:\n    print(f.write(context), f.mode)\n"
        "    f.writelines([context[:5], 'x'])\n"
        "with open(path, 'rb') as f:\n    print(type(f).__name__)",
        contexts["small"], path=str(tmp_path / "out"),
    )  # fmt: skip
    assert (ran.stdout, ran.error) == (f"{len(text)} w\nBufferedReader\n", ""), ran.traceback
    assert (tmp_path / "out").read_bytes().decode() == text + text[:5] + "x"


def test_print_shows_the_beginning(contexts: dict[str, Monocontext], text: str) -> None:
    ran = run("print(context)\nprint(context[:9], 3, sep='-')", contexts["small"])
    shown, note, last, _ = ran.stdout.removeprefix(text[:20_000]).split("\n")
    assert (shown, last) == ("", f"{text[:9]}-3")
    assert note == f"[{len(text) - 20_000:,} more characters omitted; slice it to see more: [20000:40000]]"
    lines = run("print(context.split('\\n'))", contexts["small"]).stdout
    assert lines.startswith(f"[{text.split(chr(10))[0]!r}, ")
    assert "the rest is omitted" in lines
    assert len(lines) < 21_000
    names = {"out": io.StringIO()}
    assert not run("print(context, 'x', sep='-', file=out)", contexts["small"], **names).error
    assert names["out"].getvalue() == f"{text}-x\n"


def test_a_large_text_in_a_string_io_is_a_file(contexts: dict[str, Monocontext], text: str) -> None:
    make: Any = NamespacePatch().names["__import__"]("io").StringIO
    file, real = make(contexts["small"]), make(contexts["default"])
    assert (type(file), isinstance(real, io.StringIO)) == (ContextFile, True)
    assert "".join(file) == "".join(real) == text
    with pytest.raises(ContextTooLarge):
        make(contexts["small"], newline=None)
