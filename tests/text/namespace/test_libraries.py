"""Each call of library_calls.md: below the limit as with a `str`, above it lazily or a clear error. docs/semantics.md
sums it up.

Rows of libraries that are not installed skip by name; `make test-libraries` has them all, in an environment of its own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from library_calls import CALLS, STANDARD, TEXTS, Call, is_here, outcome, results, table

ROWS = [
    line
    for line in Path(__file__).with_name("library_calls.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \S+ \| `.*` \| (lazily|real) \| ", line)
]
SEMANTICS = Path(__file__).parents[3] / "docs" / "semantics.md"


@pytest.mark.filterwarnings("ignore")  # of libraries
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.library}: {call.code}")
def test_call(call: Call) -> None:
    if not is_here(call):
        assert "MONOCONTEXT_REQUIRE_LIBRARIES" not in os.environ, f"{call.library} is not installed"
        pytest.skip(f"{call.library} is not installed")
    real = outcome(call, TEXTS[call.text])
    assert real.error is None, "the row shows nothing"
    below, _, above = results(call)
    assert not below
    assert above, f"{call.code}: above the limit neither the same nor a clear error"


def test_the_table_is_what_these_calls_give() -> None:
    assert ROWS[: len(STANDARD)] == table(STANDARD).splitlines()
    assert len(ROWS) == len(CALLS)
    for row, call in zip(ROWS, CALLS, strict=True):
        assert row.startswith(f"| {call.library} | ")
    libraries = [call for call in CALLS[len(STANDARD) :] if is_here(call)]
    assert {row for row in table(libraries).splitlines() if row} <= set(ROWS)


def test_the_documents_sum_the_table_up() -> None:
    """Which libraries have calls that work above the limit, or say what to write; all others end in an error."""
    page = SEMANTICS.read_text(encoding="utf-8").partition("| above the limit | libraries |\n|---|---|\n")[2]
    documented = [line.strip("| ").split(" | ") for line in page.partition("\n\n")[0].splitlines()]
    cells = [re.split(r"(?<!\\) ?\| ?", row) for row in ROWS]
    ways = {how for how, _ in documented}
    assert ways == {"lazily", "`ContextTooLarge`"}
    told = {(how, name) for how, names in documented for name in names.split(", ")}
    assert told == {(it[-2], it[1]) for it in cells if it[-2] in ways}


def test_the_table_is_as_large_as_was_asked_for() -> None:
    assert len(CALLS) >= 60
    assert len({call.library for call in CALLS}) >= 30
