"""Globs as ripgrep's `-g` and git read them: expected values are those that ripgrep 15.2 printed."""

from __future__ import annotations

import pytest

from monocontext.globs import Globs

NAMES = ["a.ts", "b.tsx", "lib/l.py", "lib/deep/d.py", "node_modules/x/i.ts", "tests/t.py"]


@pytest.mark.parametrize(
    ("globs", "selected"),
    [
        ([], "a.ts b.tsx lib/l.py lib/deep/d.py node_modules/x/i.ts tests/t.py"),
        (["*.{ts,tsx}"], "a.ts b.tsx node_modules/x/i.ts"),
        (["!*.{ts,tsx}"], "lib/l.py lib/deep/d.py tests/t.py"),
        (["{lib,te{s,z}ts}/**"], "lib/l.py lib/deep/d.py tests/t.py"),
        (["[^a]*.ts*"], "b.tsx node_modules/x/i.ts"),
        (["[!a]*.ts*"], "b.tsx node_modules/x/i.ts"),
        (["!node_modules"], "a.ts b.tsx lib/l.py lib/deep/d.py tests/t.py"),
        (["!node_modules/", "!lib", "!/tests/"], "a.ts b.tsx"),
        (["lib/*.py"], "lib/l.py"),
        (["./lib/*.py"], "lib/l.py"),
        (["lib/**"], "lib/l.py lib/deep/d.py"),
        (["**/d.py"], "lib/deep/d.py"),
        (["/*.py"], ""),
        (["!*.ts", "*.ts"], "a.ts node_modules/x/i.ts"),
        (["*.ts", "!*.ts"], ""),
        (["!node_modules", "*.ts"], "a.ts"),
        (["!lib", "lib/l.py"], ""),
        (["*.TS"], ""),
    ],
)
def test_globs(globs: list[str], selected: str) -> None:
    assert [name for name in NAMES if Globs(globs).select(name)] == selected.split()


def test_excluded_globs_come_last_and_may_select_again() -> None:
    assert [name for name in NAMES if Globs(["*.py"], ["lib/*", "!l.py"]).select(name)] == ["lib/l.py", "tests/t.py"]
    assert [name for name in NAMES if not Globs([], ["*.ts", "!a.ts", "lib"]).select(name)] == NAMES[2:5]


@pytest.mark.parametrize(
    ("glob", "name"),
    [("#x", "#x"), (r"\!x", "!x"), ("x ", "x "), ("{a", "{a"), (r"\{a,b\}", "{a,b}"), ("[{,}]", "{"), ("a\nb", "a\nb"),
     ("s", "a\nb/s"), ("x", "/x")],
)  # fmt: skip
def test_odd_names_are_matched_as_they_are(glob: str, name: str) -> None:
    assert Globs([glob]).select(name)
    assert not Globs([glob]).select("other")


@pytest.mark.parametrize("glob", ["!", "a\\", "{a,b}" * 11])
def test_what_is_no_glob(glob: str) -> None:
    with pytest.raises(ValueError, match="glob") as raised:
        Globs([glob])
    assert type(raised.value) is ValueError
