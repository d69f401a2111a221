"""`io.StringIO` over a lazy text, `open` and `print`: equal to those of `str`, bounded in memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from namespace_hosts import run

from monocontext import ContextTooLarge, Monocontext
from monocontext.text.namespace import NamespacePatch
from monocontext.text.namespace.string_io import LazyStringIO, StringIO
from tests.budget import examples

# -- StringIO --------------------------------------------------------------------------------------------------------

OPERATIONS = st.one_of(
    st.tuples(st.just("read"), st.one_of(st.none(), st.integers(-2, 60))),
    st.tuples(st.just("readline"), st.one_of(st.none(), st.integers(-2, 30))),
    st.tuples(st.just("seek"), st.integers(-1, 80)),
    st.tuples(st.sampled_from(["tell", "next", "seek_end", "seek_here", "getvalue", "rest"]), st.none()),
)


def apply(file: Any, operation: tuple[str, Any]) -> Any:
    name, argument = operation
    try:
        match name:
            case "next":
                return next(file, None)
            case "seek_end":
                return file.seek(0, 2)
            case "seek_here":
                return file.seek(0, 1)
            case "rest":
                return list(file)
            case "tell" | "getvalue":
                return getattr(file, name)()
        return getattr(file, name)(argument)
    except Exception as error:
        return type(error), str(error)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["a", "bc", "\n", "\r\n", "é", "😀", "\x85", "\n\n", "long " * 5]), max_size=12),
    st.lists(OPERATIONS, max_size=12),
    st.sampled_from([3, 10_000]),
)
def test_like_stringio(
    open_text: Callable[..., Monocontext], parts: list[str], operations: list[tuple[str, Any]], limit: int
) -> None:
    text = "".join(parts)
    real = io.StringIO(text)
    lazy = StringIO(open_text(text, frame_bytes=16, materialize_limit=limit))
    for operation in operations:
        assert apply(lazy, operation) == apply(real, operation), operation


def test_stringio_is_a_file_in_all_but_writing(contexts: dict[str, Monocontext], text: str) -> None:
    file = StringIO(contexts["small"])
    assert isinstance(file, LazyStringIO)
    assert isinstance(file, io.TextIOBase)
    assert isinstance(file, StringIO)
    assert (file.readable(), file.seekable(), file.writable(), file.isatty(), file.closed) == (True,) * 2 + (False,) * 3
    assert file.getvalue() is contexts["small"]
    for attempt in (lambda: file.write("a"), lambda: file.truncate(), lambda: file.writelines(["a"])):
        with pytest.raises(io.UnsupportedOperation):
            attempt()
    with file as same:
        assert same is file
        assert len(file.readlines(2000)) == len(io.StringIO(text).readlines(2000))
    for closed in (file.read, file.readline, file.tell, file.getvalue, lambda: next(file), lambda: file.seek(0)):
        with pytest.raises(ValueError, match="closed file"):
            closed()


def test_stringio_of_other_values_is_the_real_one() -> None:
    code = """
import io
f = io.StringIO("a\\nb", newline=None)
f.seek(0, 2); f.write("c")
print(f.getvalue(), isinstance(f, io.StringIO), type(io.StringIO()) is io.StringIO, isinstance(3, io.StringIO))
class Mine(io.StringIO):
    def __init__(self, extra): super().__init__("given"); self.extra = extra
print(Mine(5).read(), isinstance(Mine(1), io.StringIO), issubclass(Mine, io.StringIO))
"""
    assert run(code).stdout == "a\nbc True True False\ngiven True True\n"
    assert isinstance(io.StringIO(), StringIO)
    with pytest.raises(TypeError):
        StringIO(5)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text("ab\né😀", max_size=30),
    st.lists(
        st.one_of(
            OPERATIONS,
            st.tuples(st.just("write"), st.text("xy\n", max_size=5)),
            st.tuples(st.just("truncate"), st.one_of(st.none(), st.integers(0, 20))),
        ),
        max_size=12,
    ),
)
def test_stringio_of_a_small_text_is_a_file_to_write(
    open_text: Callable[..., Monocontext], text: str, operations: list[tuple[str, Any]]
) -> None:
    real, ours = io.StringIO(text), StringIO(open_text(text, frame_bytes=16))
    assert isinstance(ours, io.StringIO)
    assert ours.writable()
    for operation in operations:
        assert apply(ours, operation) == apply(real, operation), operation
    assert type(ours.getvalue()) is str
    assert ours.getvalue() == real.getvalue()


def test_stringio_with_other_newlines_holds_the_text(open_text: Callable[..., Monocontext]) -> None:
    text = "a\r\nb\rc\n"
    assert list(StringIO(open_text(text), newline=None)) == ["a\n", "b\n", "c\n"]
    assert list(StringIO(open_text(text), newline="")) == list(io.StringIO(text, newline=""))
    with pytest.raises(ContextTooLarge, match="leave newline= out"):
        StringIO(open_text(text, materialize_limit=3), newline="")


def test_lines_and_reads_beyond_a_million_characters(open_text: Callable[..., Monocontext]) -> None:
    text = "short\n" + "x" * 3_000_000 + "\nlast"
    file = StringIO(open_text(text, frame_bytes=1 << 18, materialize_limit=1000))
    assert file.readline() == "short\n"
    line = file.readline()
    assert type(line) is Monocontext
    assert len(line) == 3_000_001
    assert file.readline() == "last"
    file.seek(3)
    assert len(file.readline()) == 3
    assert len(file.readline(2_000_000)) == 2_000_000
    assert file.tell() == 2_000_006
    file.seek(0)
    assert len(file.read(2_500_000)) == 2_500_000
    assert file.tell() == 2_500_000
    with pytest.raises(ContextTooLarge, match="for line in file"):
        file.readlines()


def test_writing_a_lazy_text_into_a_stringio(contexts: dict[str, Monocontext], text: str) -> None:
    file = StringIO()
    assert file.write(contexts["default"]) == len(text)
    assert file.write("more") == 4
    assert file.getvalue() == text + "more"
    with pytest.raises(ContextTooLarge):
        file.write(contexts["small"])


# -- open ------------------------------------------------------------------------------------------------------------


def test_files_take_lazy_texts_of_any_size(contexts: dict[str, Monocontext], text: str, tmp_path: Path) -> None:
    code = """
with open(path, "w", encoding="utf-8", newline="") as f:
    print(f.write(context), f.write("more"), f.mode, f.encoding)
    f.writelines(context.splitlines(keepends=True)[:2])
    f.writelines([context[:3], context])
    f.writelines(context[:5000])
with open(path, encoding="utf-8", newline="") as f: data = f.read()
print(len(data), hash(data), type(f).__name__)
"""
    lazy, real = (
        run(code, context, path=tmp_path / name) for name, context in [("lazy", contexts["small"]), ("real", text)]
    )
    assert lazy == real
    assert (tmp_path / "lazy").read_bytes() == (tmp_path / "real").read_bytes()


def test_open_is_open_otherwise(tmp_path: Path) -> None:
    ours: Any = NamespacePatch().names["open"]
    path = tmp_path / "file"
    ours(path, "w", encoding="utf-16").write("a\né")  # closed, and so written, when the last reference goes
    assert path.read_text("utf-16") == "a\né"
    ours(path, "a", encoding="utf-16", newline="\r\n").write("b\n")
    assert path.read_bytes().decode("utf-16") == "a\néb\r\n"
    with ours(path, "r+", encoding="utf-16", errors="replace") as file:
        assert (file.read(), file.errors, file.name, file.mode) == ("a\néb\n", "replace", str(path), "r+")
        assert isinstance(file, io.TextIOWrapper)
    with ours(path, "wb") as file:
        assert type(file) is io.BufferedWriter
        file.write(b"x\n")
    with ours(path) as file:
        assert type(file) is io.TextIOWrapper
    with ours(path, "w", 1) as file:
        assert file.line_buffering
        file.write("now\n")
        assert path.read_text() == "now\n"
        with pytest.raises(TypeError, match="must be str"):
            file.write(5)
    for wrong in ((tmp_path / "absent",), (path, "q"), (path, "wb", -1, "utf-8")):
        with pytest.raises((FileNotFoundError, ValueError)):
            ours(*wrong)
    with pytest.raises(FileExistsError):
        ours(path, "x")


# -- print -----------------------------------------------------------------------------------------------------------


def printed(*values: object, **options: Any) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        NamespacePatch(print_characters=options.pop("limit", 20_000)).names["print"](*values, **options)
    return out.getvalue()


def test_print_shows_the_beginning(contexts: dict[str, Monocontext], text: str) -> None:
    for context in contexts.values():
        assert printed(context, limit=100) == (
            f"{text[:100]}\n[{len(text) - 100:,} more characters omitted; "
            "slice to see more: name = ...; name[100:200]]\n"
        )
        assert printed(context[5:], limit=len(text)) == text[5:] + "\n"
        assert printed(context[:5000], 1, sep="-", end="!") == f"{text[:5000]}-1!"


def test_print_reads_no_more_than_it_shows(open_text: Callable[..., Monocontext]) -> None:
    context = open_text("some words\n" * 20_000, frame_bytes=4000)
    before = context.stats.bytes_fetched
    printed(context, limit=3000)
    assert context.stats.bytes_fetched - before < 8000


def test_print_of_lists(contexts: dict[str, Monocontext], text: str) -> None:
    lines, real = contexts["small"].split("\n"), text.split("\n")
    out = printed(lines, limit=500)
    assert out.startswith(str(real)[:500] + "\n[the rest of <")
    assert "slice to see more: name = ...; name[a:b]]\n" in out
    assert printed(lines, 2, limit=10**6) == f"{real} 2\n"
    assert printed(lines, limit=len(str(real))) == f"{real}\n"
    assert printed(real, limit=5) == f"{real}\n"


def test_print_of_other_values_is_print(capsys: pytest.CaptureFixture[str]) -> None:
    ours = NamespacePatch().names["print"]
    ours()
    ours(1, "two", None, sep=", ", end=".\n", flush=True)
    ours("error", file=sys.stderr)
    assert capsys.readouterr() == ("\n1, two, None.\n", "error\n")
    with pytest.raises(TypeError):
        ours(1, sep=5)
    with pytest.raises(TypeError):
        ours(1, colour="red")


def test_print_into_a_file_of_the_code_cuts_nothing(
    contexts: dict[str, Monocontext], text: str, tmp_path: Path
) -> None:
    code = """
with open(path, "w", encoding="utf-8", newline="") as f:
    print("Text:", context, context.split("\\n"), 5, sep="|", end="END", file=f, flush=True)
    print(context, file=f)
"""
    for limit, context in contexts.items():
        assert not run(code, context, path=tmp_path / limit).error
        assert (tmp_path / limit).read_bytes().decode() == f"Text:|{text}|{text.split(chr(10))}|5END{text}\n"
    assert run(
        "import io\nf = io.StringIO()\nprint(context, file=f)\nprint(len(f.getvalue()))", contexts["default"]
    ) == (run("import io\nf = io.StringIO()\nprint(context, file=f)\nprint(len(f.getvalue()))", text))
    ran = run("import io\nf = io.StringIO()\nprint(context, file=f)", contexts["small"])
    assert ran.error == "ContextTooLarge"


def test_print_to_standard_output_by_name_is_a_look(
    contexts: dict[str, Monocontext], capsys: pytest.CaptureFixture[str]
) -> None:
    NamespacePatch(print_characters=50).names["print"](contexts["default"], file=sys.stdout)
    assert "slice to see more" in capsys.readouterr().out
