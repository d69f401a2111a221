"""The comparison finds what a naive window would get wrong: one deliberate bug each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from regex_equality import context_of, differences, forced_marks, windows

from monocontext import regex
from monocontext.text.regex import pattern as pattern_module
from monocontext.text.regex import plan as plan_module
from monocontext.text.regex import prefilter, rewrite, stream, tree, widths
from monocontext.text.regex.plan import Plan

TEXT = "aab 12 disks ERROR x\n\nlabel:  y (a, b)\n disk [1,\n2] aba" * 3 + "\nKelvin \u212aſ ſip"
CASES = [
    r"(?s)|l.*?y", r"a*?", r"(?i)sip",
    r"\s+", r"(?s)a.*?b", r"(?s)l.*?y", r"\([^)]+\)", r"\bdisk\b", r"x*", r"\b", r"(?m)^", r"(?<=a)b", r"\Bb",
    r"(?m)$", r"$", r"(?s)(?=.*disk)a", r"(?!a+b)a", r"(\w+)?", r"(?:a|b)*", r"a(?:a|b)*?b", r"(?i)k\w+",
    r"ERROR (\w)", r"(?s).{0,3}disk", r"[a-z]+:\s*(\S)", r"(?s)\[.*?\]", r"\n+", r"(?s)(\s*)(?!\w*y)", r"\d+$",
    r"a*+b", r"(?s:.)*?k", r".*", r"\A", r"(?ms)(a.*?)^", r"(?:\w+\s)+\d", r"(?>a+)\w", r"\w+:", r"(a)?(?(1)\w+|x)",
    r"a{2,}", r"(?:ab){2,}?",
]  # fmt: skip


def all_differences() -> list[str]:
    """What the comparison finds at a few window sizes, by every way."""
    found: list[str] = []
    for name, text in (("mutants-one", TEXT), ("mutants-two", TEXT[::-1])):
        with context_of(text, 9, name=name) as context:
            for size in (1, 2, 3, 5, 11):
                for bounded in (None, 2):
                    with windows(size):
                        if bounded is None:
                            regex.purge()
                            found += _compare(text, context)
                        else:
                            with forced_marks(bounded):
                                found += _compare(text, context)
                    if found:
                        return found
    return found


def _compare(text: str, context: Any) -> list[str]:
    found = []
    for pattern in CASES:
        for call in ("finditer", "match"):
            try:
                found += differences(pattern, 0, text, context, 2, len(text) - 1, 0, only=call)[2]
            except (AssertionError, IndexError) as error:  # pragma: no cover
                found.append(repr(error))
    return found


def planned(**changes: Callable[[Plan], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Plans with other values."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        real = plan_module.plan

        def plan(pattern: Any) -> Plan:
            made = real(pattern)
            return dataclasses.replace(made, **{name: change(made) for name, change in changes.items()})

        patch.setattr(pattern_module, "plan", plan)

    return mutate


def without_marks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite._Rewriter, "_mark", lambda self: (tree.Fail(),))


def without_skipping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite._Rewriter, "_unless_marked", lambda self, nodes: nodes)


def without_empty_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stream.Scan, "_replay", property(lambda self: False, lambda self, value: None), raising=False)


def without_run_ends(patch: pytest.MonkeyPatch) -> None:
    def run(self: Any, repeat: tree.Repeat, rest: tree.Seq) -> tree.Seq:
        self._in_head = False
        return (repeat, *self.sequence(rest))

    patch.setattr(rewrite._Rewriter, "_rewrite_run", run)


def with_short_reach(patch: pytest.MonkeyPatch) -> None:
    for where in ("end", "end_string", "boundary"):
        patch.setitem(widths._REACH_AT, where, 0)


def without_fold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prefilter, "_fold_for_find", lambda literal, window: (window.lower(), literal.text.lower()))


def without_negative_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite._Rewriter, "_rewrite_negative_look", lambda self, look, rest: (look, *self.sequence(rest)))


def shorter(stops: widths.Stops | None) -> widths.Stops | None:
    return dataclasses.replace(stops, count=1) if stops else None


def headless(marked: rewrite.Marked | None) -> rewrite.Marked | None:
    return dataclasses.replace(marked, head=0) if marked else None


MUTANTS = {
    "no marker": without_marks,
    "what follows the marker is not skipped": without_skipping,
    "a run that reaches the end is not marked": without_run_ends,
    "no left context": planned(left=lambda plan: 0),
    "empty match forgotten at a window's edge": without_empty_state,
    "reach too short": planned(reach=lambda plan: plan.reach and plan.reach - 2),
    "anchors look nowhere": with_short_reach,
    "head not kept clear of the end": planned(
        marked=lambda plan: plan.marked and dataclasses.replace(plan.marked, head=0)
    ),
    "one stop is enough": planned(stops=lambda plan: shorter(plan.stops)),
    "lower() for a literal in any text": without_fold,
    "negative look-ahead decided at the end": without_negative_look,
}


def test_nothing_differs_without_a_mutant() -> None:
    assert all_differences() == []


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    regex.purge()
    try:
        assert all_differences()
    finally:
        monkeypatch.undo()
        regex.purge()
