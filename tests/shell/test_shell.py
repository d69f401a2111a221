"""`monocontext.tools(..., shell=True)`: what the shell may do, what it may not, and what it reads."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import monocontext
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.testing import FaultyStore
from monocontext.testing.faults import fail
from tests.shell.tree import make_tree

pytest.importorskip("bashkit")
from monocontext.errors import StoreFailure, ToolRefusal
from monocontext.text_tools import shell as shell_module
from monocontext.text_tools.shell import Shell

REFUSED = (
    "echo x > README.md", "touch new", "rm README.md", "mkdir d", "mv README.md x", "sed -i s/a/b/ README.md",
    "cp README.md copy", "ln -s a b", "chmod 777 README.md", "truncate -s 0 README.md",
)  # fmt: skip
Bash = Callable[[str], str]


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bash]:
    place = tmp_path_factory.mktemp("texts") / "tree"
    publish(make_tree(), place)
    with Monocontext.open(place) as text:
        [tool] = monocontext.tools(text, shell=True)
        yield tool


def test_one_function_over_one_text(bash: Bash) -> None:
    assert bash.__name__ == "bash"
    assert bash("pwd") == "/tree"
    assert bash("grep -rn 'class Globs' . | cut -d: -f1") == "./src/globs.py"
    excluded = "mkdir -p /tmp/q/src; echo class > /tmp/q/src/x; grep -r --exclude-dir=src class src ./src"
    excluded += "; grep -r --exclude-dir=src class /tmp/q"
    assert bash(f"{excluded}; grep -rl --exclude-dir=src 'class Globs' src/") == "src/globs.py"
    assert bash('x=5; echo "$x | while read y"; wc --lines data/empty.txt data/numbers.txt | tail -1').split() == [
        *["5", "|", "while", "read", "y"], *["5", "total"],
    ]  # fmt: skip
    assert bash("cat nothing") == "cat: nothing: No such file or directory\n[exit code 1]"


def test_a_long_word_takes_no_time(bash: Bash) -> None:
    began = time.monotonic()
    bash(f"rev {30_000 * 'a'}")
    assert time.monotonic() - began < 10


def test_of_options_that_undo_each_other_the_last_one_counts(bash: Bash) -> None:
    assert bash("rg -n -N needle data/no_newline.txt; rg -N -n needle data/no_newline.txt") == "a needle\n2:a needle"
    assert bash("rg -i -s NEEDLE data/no_newline.txt; rg -s -i NEEDLE data/no_newline.txt") == "a needle"
    assert bash(r"rg -I -H needle data/no_n*; rg -lS 'class\Wglobs'") == "data/no_newline.txt:a needle\nsrc/globs.py"


def test_several_texts_are_folders(tmp_path: Path) -> None:
    publish({"a.txt": "one needle\n"}, tmp_path / "a")
    publish("two needles\nthree\n", tmp_path / "b")
    [bash] = monocontext.tools({"logs": tmp_path / "a", "tmp": tmp_path / "b"}, shell=True)
    assert bash("grep -rn needle /logs /tmp-text") == "/logs/a.txt:1:one needle\n/tmp-text/text:1:two needles"
    assert bash("wc -c /tmp-text/text") == "18 /tmp-text/text"
    assert "/logs/a.txt:1" in bash("grep -rc needle /")
    assert bash("cd /logs; grep -l -L two *; rg --files-without-match -l one a.txt") == "a.txt\na.txt"
    with pytest.raises(TypeError, match="several texts need shell=True"):
        monocontext.tools({"logs": tmp_path / "a"})


def test_folders_of_names_that_are_alike_or_within_each_other(tmp_path: Path) -> None:
    for name in "abc":
        publish({"f": f"text {name}\n"}, tmp_path / name)
    [bash] = monocontext.tools({"x y": tmp_path / "a", "x-y": tmp_path / "b", "x-y/in": tmp_path / "c"}, shell=True)
    assert bash("cat /x-y/f /x-y-2/f /x-y/in/f; grep -r c /x-y/in") == "text a\ntext b\ntext c\n/x-y/in/f:text c"


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("sed -n 1,500p mid > /tmp/x; wc -l < /tmp/x", "500"),
        ("x=$(grep e mid); echo ${#x}", "1859999"),
        ("cat long | grep -c each", "3400"),
        ("grep e long 2>/dev/null | grep -c each", "3400"),
        ("{ grep e long; } 2>&1 | grep -c each", None),
        ("find . -name long -exec grep e {} + | grep -c each", None),
        ("for f in mid mid mid mid mid mid; do grep e $f; done 2>&1 | grep -c each", None),
        ("x=$(head -n 3400 long); echo ${#x}", None),
    ],
)
def test_output_above_10_mib_is_whole_or_an_error(long_lines: Bash, command: str, lines: str | None) -> None:
    """bashkit drops the rest of what it keeps of our commands, and says nothing."""
    told = long_lines(command)
    assert told == lines if lines else "more than 10,485,760 bytes of output" in told and "[exit code" in told


@pytest.fixture(scope="module")
def long_lines(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    place = tmp_path_factory.mktemp("texts") / "logs"
    line = "thirty characters in each line " * 99 + "thirty characters in each line\n"
    publish({"mid": line * 600, "long": line * 3_400}, place)
    [tool] = monocontext.tools(place, shell=True)
    return tool


def test_find_is_whole_above_1_mib_of_names(tmp_path: Path) -> None:
    """bashkit's own, which has the rest of the tests, stops there and says so."""
    publish({f"{number:0200}": "x\n" for number in range(6000)}, tmp_path / "t")
    [bash] = monocontext.tools(tmp_path / "t", shell=True)
    assert bash("find . -type f | wc -l; find . | sort | tail -1 | wc -c") == "6000\n203"
    assert "output size limit exceeded" in bash("find . -newer . -o -true | wc -l")


def test_parts_of_long_files_read_just_them(tmp_path: Path) -> None:
    publish({"long": "thirty characters in each line\n" * 820_000, "accents": "aéé\n" * 3_000}, tmp_path / "t")
    with Monocontext.open(tmp_path / "t", prefetch="off") as text:
        [bash] = monocontext.tools(text, shell=True)
        for command, output in (
            ("head -c 7 long", "thirty "),
            ("tail -c 7 long", "h line\n"),
            ("head --bytes=1K accents | wc -c", "1024\n"),
            ("tail -c 6 accents | od -An -tx1", " 61 c3 a9 c3 a9 0a\n"),
            ("tail -c 4 accents | od -An -tx1", " a9 c3 a9 0a\n"),
            ("head -c 4 accents | od -An -tx1", " 61 c3 a9 c3\n"),
            ("head -c 0 long; tail -c 0 long; head -n 0 long; tail -n 0 long", ""),
            ("tail -n +820000 long | wc -l; head -n 9999999999999999999 accents | wc -l", "1\n3000\n"),
            ("sed -n '700000,700001p' long | wc -c", "62\n"),
        ):
            assert bash(command).rstrip("\n") == output.rstrip("\n"), command
        assert text.stats.bytes_fetched < 200_000
        assert "long: 25,420,000 bytes are too many for this command: use grep, or head" in bash("cat long")


def test_scratch_lives_on_and_the_texts_are_read_only(bash: Bash) -> None:
    assert bash("echo one > /tmp/kept; cd /; x=1") == ""
    assert bash("cat /tmp/kept; pwd; echo $x") == "one\n/tree\n"
    for command in REFUSED:
        assert "[exit code" in bash(command), command
    assert bash("head -1 README.md").startswith("#")


def test_long_output_is_cut_and_goes_on(bash: Bash) -> None:
    shown, _, note = bash("cat logs/app.log").rpartition("\n")
    assert len(shown.encode()) < 20_000
    goes_on = bash(note.partition("go on with ")[2].partition(", or search")[0])
    assert make_tree()["logs/app.log"].startswith(f"{shown}\n{goes_on}")


def test_names_that_are_no_paths(tmp_path: Path) -> None:
    publish({"../../etc/passwd": "a\n", "x/../y": "b\n", "new\nline": "c\n", "/abs": "d\n", "": "e\n", "z": "f\n",
             "z/w": "g\n", "-rf": "h\n", "$(id)": "i\n", "nul\0": "j\n", "a//b": "k\n", "\x1b[2J\n/\u202e": "l\n",
             "é" * 200: "m\n"}, tmp_path / "odd")  # fmt: skip
    [bash] = monocontext.tools(tmp_path / "odd", shell=True)
    assert bash("grep -rh . . | sort | tr -d '\\n'") == "abcdefghijklm"
    assert bash("cat etc/passwd x/y abs -- -rf '$(id)' z 'z~w~6' a/b") == "a\nb\nd\nh\ni\nf\ng\nk"
    assert bash("cat new~line '~[2J~/~' é*~12; find . -type f | wc -l") == "c\nl\nm\n13"
    assert bash("cat '../../../etc/passwd'").startswith("user:")


def test_a_pattern_that_backtracks_ends_the_process_and_not_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_module, "_GRACE_SECONDS", 0.5)
    publish({"a": "a" * 40 + "b\n"}, tmp_path / "t")
    with Monocontext.open(tmp_path / "t") as text:
        shell = Shell({"/t": lambda: text}, seconds=1.0)
        shell.run("echo x > /tmp/x", 1000)
        with pytest.raises(ToolRefusal, match=r"stopped after 1\.5 s; the next command starts a new one with an empty"):
            shell.run("grep -E '(a+)+$' a", 1000)
        assert shell.run("ls /tmp; cat a | wc -c", 1000).stdout == "42\n"
        shell.close()


def test_texts_are_read_for_a_part_of_the_time(tmp_path: Path) -> None:
    publish({"a": "a\n"}, tmp_path)
    with Monocontext.open(tmp_path) as text:
        shell = Shell({"/t": lambda: text}, seconds=3.0)
        assert "stopped for lack of time" in shell.run("sleep 2.7; cat a", 1000).stderr
        shell.close()


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish("text", tmp_path)
    monkeypatch.setattr(shell_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(monocontext.MonocontextError, match=r"pip install -e '\.\[shell\]'"):
        monocontext.tools(tmp_path, shell=True)


def test_a_search_reads_what_the_filters_leave(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(3000)]
    documents = {
        f"pkg{i % 40:02}/mod{i:04}.py": "".join(" ".join(rng.choices(words, k=8)) + "\n" for _ in range(60))
        + ("rare_identifier = 1\n" if i in (7, 1500) else "")
        for i in range(2500)
    }
    publish(documents, tmp_path)
    hits = "./pkg07/mod0007.py:61:rare_identifier = 1\n./pkg20/mod1500.py:61:rare_identifier = 1\n"
    for command, output, gets in (
        ("grep -rn rare_identifier .", hits, 6),
        ("grep -rn no_such_identifier .", "", 3),
        ("tail -1 pkg07/mod0007.py", "rare_identifier = 1\n", 2),
        ("wc -l pkg00/mod0000.py", "60 pkg00/mod0000.py\n", 1),
    ):
        with Monocontext.open(tmp_path, prefetch="off") as text:
            shell = Shell({"/code": partial(_same, text)})
            assert shell.run(command, 1000).stdout == output
            shell.close()
            assert (command, text.stats.gets) == (command, gets)


def test_a_store_that_is_down_is_told(tmp_path: Path) -> None:
    publish({f"d{i % 7}/f{i}": f"text of f{i}\n" * 200 for i in range(6000)}, tmp_path, filters=False)
    is_down: list[bool] = []
    store = FaultyStore(open_store(tmp_path), lambda *_: fail(StoreFailure("the store is down")) if is_down else None)
    for command in ("ls", "sort d5/f5", "[ -f d5/f5 ] || echo no", "grep -r f5 ."):
        is_down.clear()
        with Monocontext.open(store, prefetch="off") as text:
            is_down.append(True)
            shell = Shell({"/text": partial(_same, text)})
            ran = shell.run(command, 20_000)
            shell.close()
        assert "the store is down" in ran.stderr, (command, ran)
        assert ran.exit_code != 0


def _same(text: Monocontext) -> Monocontext:
    return text
