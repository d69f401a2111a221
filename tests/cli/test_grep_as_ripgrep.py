"""`monocontext grep` prints what ripgrep prints, but for the rows of the table in docs/guides/code.md."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from ran import Cli

CHECKOUT = Path(__file__).parents[2]
RG = shutil.which("rg")
LINES = round(150 * float(os.environ.get("MONOCONTEXT_FUZZ", "1")))
PATTERNS = (
    *("one", "two", "ERROR", "def", "the", "a", "word1", "import", r"\w+", "[a-z]+", r"\bthe\b", "o.e", "(one|two)"),
    *("t[a-z]*", r"\d+", r"\s+$", "é", "漢", "stra(ß|ss)e", "k", "=", r"\(", r"^\s*def", "e$", r"\S+\s"),
    *("(?i)(?m)error", "[^a]", r"\.", "--", '"', "[A-Z]{2,}", "one|two", "(?:a|b)c?", r"\t"),
)
EMPTY = ("^", "$", "^$", "x*", ".*", r"\b")
"""Patterns that match nothing at all, too."""
GLOBS = ("*.py", "*.{ts,tsx}", "!*.md", "src/*.py", "docs/**", "!docs", "**/b/*", "*.js", "*", "!*.txt", "*.t?")
FLAGS = {
    **{"-i": 0.2, "-w": 0.15, "-x": 0.08, "-F": 0.1, "-n": 0.25, "-N": 0.1, "-H": 0.1, "-I": 0.1, "-c": 0.12},
    **{"-l": 0.08, "--heading": 0.05, "-q": 0.04},
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files of this repository, and lines that are long, empty, without an end, or beyond ASCII."""
    folder = tmp_path / "files"
    sources = {"src": "monocontext/cli/*t*.py", "src/a": "monocontext/page/parts/*.js", "docs/b": "docs/*.md"}
    for name, source in sources.items():
        (folder / name).mkdir(parents=True)
        for path in sorted(CHECKOUT.glob(source))[:5]:
            shutil.copy(path, folder / name)
    chance = random.Random(3)
    long = "".join(f"word{chance.randrange(99)} " * chance.choice([1, 3, 2000]) + "\n" for _ in range(40))
    texts = {"docs/long.txt": long, "docs/uni.txt": "é漢字 ok\nÉtude naïve\nstraße STRASSE\n\n \ttab\nno end"}
    texts |= {"empty.txt": "", "nl.txt": "\n\n\n", "src/t.tsx": "const one = 2;\n"}
    texts["src/t.ts"] = "const one = 1;\nfunction two() {}\n"
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def draw(chance: random.Random) -> tuple[list[str], list[str]]:
    """Flags with patterns, and globs, of a command line that is outside of the table of differences."""
    flags = [flag for flag, share in FLAGS.items() if chance.random() < share]
    inverts, bounded = chance.random() < 0.12, chance.random() < 0.12
    flags += ["-v"] if inverts else []
    flags += ["-m", str(chance.choice([0, 1, 2, 5]))] if bounded else []
    for flag in "-A", "-B", "-C":
        flags += [flag, str(chance.choice([0, 1, 2, 5]))] if not bounded and chance.random() < 0.1 else []
    only = not inverts and chance.random() < 0.12
    flags += [flag for flag in ["-o"] if only]
    flags += [flag for flag in ["--column"] if not inverts and chance.random() < 0.1]
    patterns = PATTERNS if only or "--column" in flags else PATTERNS + EMPTY
    for _ in range(chance.choice([1, 1, 1, 2])):
        flags += ["-e", chance.choice(patterns)]
    return flags, [chance.choice(GLOBS) for _ in range(chance.choice([0, 0, 0, 1, 2, 3]))]


@pytest.mark.fuzz
@pytest.mark.skipif(RG is None, reason="no rg (ripgrep 15) on the PATH")
def test_bytes_and_exit_codes_are_those_of_ripgrep(cli: Cli, files: Path, tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        assert RG
        command = [RG, "--no-config", "--no-ignore", "--text", *words]
        return subprocess.run(command, cwd=files, capture_output=True, stdin=subprocess.DEVNULL, check=False)

    cli("upload", files, tmp_path / "all", "--frame-bytes", "2048").fine()
    names = [row.split()[-1] for row in cli("ls-documents", tmp_path / "all").fine().out.splitlines()]
    chance, wrong = random.Random(), list[str]()
    for _ in range(LINES):
        flags, globs = draw(chance)
        if globs.count("!docs") and globs[-1] != "!docs":
            continue  # below an excluded folder nothing is selected again
        selecting = [word for glob in globs for word in ("-g", glob)]
        chosen = run("--files", *selecting).stdout.decode().split()
        order = [name for name in names if name in chosen]  # ripgrep sorts otherwise
        name = [] if "-I" in flags else ["-H"]
        expected = run("-j1", *name, *flags, *order) if order else subprocess.CompletedProcess("", 1, b"")
        found = cli("grep", *flags, *selecting, tmp_path / "all")
        if (found.code, found.out.encode()) != (expected.returncode, expected.stdout):
            wrong.append(shlex.join([*flags, *selecting]))
    assert not wrong, f"{len(wrong)} of {LINES:,}: {wrong[:10]}"


@pytest.mark.fuzz
@pytest.mark.skipif(RG is None, reason="no rg (ripgrep 15) on the PATH")
@pytest.mark.parametrize("name", ["src/t.ts", "docs/uni.txt", "docs/long.txt", "nl.txt"])
def test_one_file_is_printed_as_one_file(cli: Cli, files: Path, tmp_path: Path, name: str) -> None:
    cli("upload", files / name, tmp_path / "one", "--frame-bytes", "2048").fine()
    chance, place, file = random.Random(), tmp_path / "one", Path(name).name
    for _ in range(LINES // 5):
        flags, _ = draw(chance)
        command = [RG or "", "--no-config", "--text", *flags, file]
        expected = subprocess.run(command, cwd=(files / name).parent, capture_output=True, check=False)
        found = cli("grep", *flags, place)
        assert (found.code, found.out.encode()) == (expected.returncode, expected.stdout), shlex.join(flags)
