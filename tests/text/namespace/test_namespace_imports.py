"""`import` in a namespace: shims for four modules, the real ones for everybody else. `json` and `csv` behind them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
from namespace_hosts import run

from monocontext import Monocontext, regex
from monocontext.testing import virtual_context
from monocontext.text.lazy_lists import LazyList
from monocontext.text.namespace import NamespacePatch


@pytest.mark.parametrize(
    "statement",
    [
        "import re; r = re",
        "import re as r",
        "import re, json as j; r = re",
        "import re._compiler; r = re",
        "r = __import__('re')",
        "def f():\n    import re\n    return re\nr = f()",
        "class C:\n    import re\nr = C.re",
        "import csv, io, json, re; r = re",
    ],
)
def test_forms_of_import(statement: str, contexts: dict[str, Monocontext], text: str) -> None:
    assert run(f"{statement}\nprint(r.findall('value-[0-9]+', context)[:2])", contexts["small"]).stdout == (
        "['value-7', 'value-47']\n"
    )


def test_from_imports(contexts: dict[str, Monocontext]) -> None:
    code = """
from re import findall, search as s, IGNORECASE
from json import *
from json.decoder import JSONDecoder, JSONDecodeError as E
import json.decoder as d
import json.tool
import os.path, collections.abc as abc
print(len(findall("value-47", context)), s("(?i)SECRET", context).group(), IGNORECASE)
print(loads("[1]"), JSONDecoder is d.JSONDecoder is json.JSONDecoder, E is json.JSONDecodeError, json.tool.__name__)
print(os.path.__name__, abc.Sequence.__name__)
"""
    ran = run(code, contexts["small"])
    assert not ran.error, ran.traceback
    assert ran.stdout == "1 secret re.IGNORECASE\n[1] True True json.tool\nposixpath Sequence\n"


@pytest.mark.parametrize("real", [re, json, io, csv])
def test_a_shim_is_the_module_in_all_but_a_few_names(real: ModuleType) -> None:
    shim = NamespacePatch().names["__import__"](real.__name__)
    assert isinstance(shim, ModuleType)
    assert shim is not real
    assert repr(shim) == repr(real)
    assert dir(shim) == dir(real)
    ours = {name for name in dir(real) if getattr(shim, name) is not getattr(real, name)} - {"__dict__", "__getattr__"}
    assert (
        ours
        == {
            "re": {*(name for name in re.__all__ if name in vars(regex))},
            "json": {"dump", "dumps", "load", "loads"},
            "io": {"StringIO", "open"},
            "csv": {"Sniffer"},
        }[real.__name__]
    )
    with pytest.raises(AttributeError, match=f"module '{real.__name__}' has no attribute 'nothing'"):
        shim.nothing  # noqa: B018


def test_identities_that_code_relies_on() -> None:
    code = """
import re, json, io, csv, sys
print(re.IGNORECASE is real_re.IGNORECASE, re.I, re.error is real_re.error, json.JSONDecodeError is error)
print(io.BytesIO, io.TextIOWrapper is type(sys.__stdout__), io.open is open, sys.modules["re"] is real_re)
print(re is __import__("re"), csv.QUOTE_ALL, csv.DictReader.__name__, json.JSONEncoder)
"""
    ran = run(code, real_re=re, error=json.JSONDecodeError)
    assert ran.stdout == (
        "True re.IGNORECASE True True\n<class '_io.BytesIO'> True True True\n"
        "True 1 DictReader <class 'json.encoder.JSONEncoder'>\n"
    )


def test_nothing_outside_the_namespace_changes() -> None:
    before = dict(sys.modules)
    originals = {name: dict(vars(sys.modules[name])) for name in ("re", "json", "io", "csv", "builtins")}
    run("import re, json, io, csv\njson.loads = 5\nre.extra = 1\nio.open('/dev/null', 'w').close()")
    assert {name: dict(vars(sys.modules[name])) for name in originals} == originals
    assert all(sys.modules[name] is module for name, module in before.items())


def test_what_code_sets_on_a_module_stays_in_its_namespace() -> None:
    one, other = NamespacePatch().names["__import__"], NamespacePatch().names["__import__"]
    one("json").loads = len
    assert one("json").loads is len
    assert other("json").loads("[1]") == [1]


def test_a_module_that_is_not_there() -> None:
    assert run("import nothing_of_the_kind").error == "ModuleNotFoundError"
    ran = run("from json import nothing")
    assert (ran.error, ran.message.partition(" (")[0]) == ("ImportError", "cannot import name 'nothing' from 'json'")
    assert run("from . import x").error in ("ImportError", "KeyError")


def test_another_module_of_the_same_name_is_that_module(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("json")
    monkeypatch.setitem(sys.modules, "somewhere", other)
    assert NamespacePatch().names["__import__"]("somewhere") is other


def test_libraries_keep_the_real_modules() -> None:
    code = "import textwrap, json.decoder\nprint(textwrap.re is real, json.decoder.re is real)"
    assert run(code, real=re).stdout == "True True\n"


# -- json ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def record(open_text: Callable[..., Monocontext]) -> Monocontext:
    return open_text(json.dumps({"rows": [{"id": i, "name": "é😀"} for i in range(50)]}))


def test_loads_a_lazy_text(record: Monocontext) -> None:
    shim = NamespacePatch().names["__import__"]("json")
    expected = {"rows": [{"id": i, "name": "é😀"} for i in range(50)]}
    assert shim.loads(record) == expected
    assert shim.loads(record, parse_int=str)["rows"][1]["id"] == "1"
    string_io = NamespacePatch().names["__import__"]("io").StringIO
    assert shim.load(string_io(record)) == expected
    assert shim.load(io.StringIO("[1]"), parse_int=str) == ["1"]
    assert shim.loads(b"[1]") == [1]
    with pytest.raises(TypeError, match="must be str, bytes or bytearray"):
        shim.loads(None)


def test_loads_above_the_limit_says_what_to_write(contexts: dict[str, Monocontext]) -> None:
    context = contexts["small"]
    before = context.stats.gets
    ran = run("import json\njson.loads(context)", context)
    assert ran.error == "ContextTooLarge"
    assert "for line in context.lines: json.loads(line)" in ran.message
    assert f"{len(context):,}" in ran.message
    assert "3,000" in ran.message
    assert context.stats.gets == before


def test_dumps_lazy_values_at_any_depth(record: Monocontext) -> None:
    shim = NamespacePatch().names["__import__"]("json")
    real = str(record)
    nested = lambda text: {"a": [1, {"b": (text, None)}], "c": text}  # noqa: E731 - the same with either
    assert shim.dumps(nested(record)) == json.dumps(nested(real))
    assert shim.dumps(record, ensure_ascii=False) == json.dumps(real, ensure_ascii=False)
    assert shim.dumps(nested(record), indent=1, sort_keys=True) == json.dumps(nested(real), indent=1, sort_keys=True)
    out = io.StringIO()
    shim.dump(nested(record), out)
    assert out.getvalue() == json.dumps(nested(real))
    assert shim.dumps({record: 1}) == json.dumps({real: 1})


def test_the_callers_default_and_encoder_are_kept(record: Monocontext) -> None:
    shim = NamespacePatch().names["__import__"]("json")
    real = str(record)

    class Sets(json.JSONEncoder):
        def default(self, value: object) -> object:
            return sorted(value) if isinstance(value, set) else super().default(value)

    assert shim.dumps([record, {2, 1}], default=list) == json.dumps([real, [1, 2]])
    assert shim.dumps([record, {2, 1}], cls=Sets) == json.dumps([real, [1, 2]])
    assert shim.dumps([record, {2, 1}], cls=Sets, default=len) == json.dumps([real, 2])
    for options in ({}, {"cls": Sets}):
        with pytest.raises(TypeError, match="Object of type object is not JSON serializable"):
            shim.dumps([record, object()], **options)


def test_dumps_above_the_limit(contexts: dict[str, Monocontext]) -> None:
    for code in ("json.dumps([context])", "json.dumps(context.split('\\n'))"):
        ran = run(f"import json\n{code}", contexts["small"])
        assert ran.error == "ContextTooLarge"
        assert "dump" in ran.message
    assert isinstance(contexts["small"].split("\n"), LazyList)


# -- csv -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_csv_of_a_lazy_text(open_text: Callable[..., Monocontext]) -> None:
    table = "name;age\n" + "".join(f"n{i};{i}\n" for i in range(9000))
    code = """
import csv, io
dialect = csv.Sniffer().sniff(context)
print(dialect.delimiter, csv.Sniffer().has_header(context), isinstance(csv.Sniffer(), csv.Sniffer))
rows = list(csv.DictReader(io.StringIO(context), dialect=dialect))
print(len(rows), rows[4711])
print(next(csv.reader(context)), sum(1 for _ in csv.reader(context.splitlines())))
"""
    ran = run(code, open_text(table, materialize_limit=3000))
    assert ran == run(code, table)
    assert not ran.error


# -- a text that nobody could hold -----------------------------------------------------------------------------------


def test_ten_gigabytes() -> None:
    filler = "".join(f"{i},line of the table\n" for i in range(10_000))
    store = virtual_context(10**10 // len(filler), filler)
    context = Monocontext.open(store, cache_bytes=1 << 20)
    opened = context.stats.bytes_fetched
    refused = """
import json, io
for attempt in (lambda: json.loads(context), lambda: json.load(io.StringIO(context)), lambda: json.dumps([context]),
                lambda: "".join([context]), lambda: io.StringIO(context).readlines(),
                lambda: io.StringIO(context, newline=None), lambda: io.StringIO().write(context)):
    try: attempt()
    except MemoryError as error: print(type(error).__name__)
"""
    assert run(refused, context).stdout == "ContextTooLarge\n" * 7
    assert context.stats.bytes_fetched == opened
    looked = """
import csv, io, re
print(type(context), isinstance(context, str), len(str(context)) == len(context))
f = io.StringIO(context)
print(f.readline(), f.read(10), next(csv.reader(f)), csv.Sniffer().sniff(context).delimiter)
print(f.seek(0, 2) == len(context), f.read(), f.seek(len(context) - 6), f.read())
print(context)
print(context.split("\\n"))
longer = context.replace("line", "lines")
print(longer, io.StringIO(longer).readline(), csv.Sniffer().sniff(longer).delimiter, type(longer))
"""
    ran = run(looked, context)
    assert not ran.error, ran.traceback
    assert ran.stdout.startswith("<class 'str'> True True\n0,line of the table\n 1,line of  ['the table'] ,\nTrue  ")
    assert len(ran.stdout) < 61_000
    assert (
        "\n[the rest omitted; slice to see more: longer[20000:40000]] 0,lines of the table\n , <class 'str'>"
        in ran.stdout
    )
    assert context.stats.bytes_fetched - opened < 20 << 20
