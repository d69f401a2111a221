"""Each call of the table in docs/semantics.md: below the limit as with a `str`, above it lazily or a clear error.

Rows of libraries that are not installed skip by name; `make test-libraries` has them all, in an environment of its own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from library_calls import CALLS, STANDARD, TEXTS, Call, is_here, outcome, results, table

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


def test_the_table_in_the_documents_is_what_these_calls_give() -> None:
    text = SEMANTICS.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| \S+ \| `.*` \| (lazily|real) \| ", line)]
    assert rows[: len(STANDARD)] == table(STANDARD).splitlines()
    assert len(rows) == len(CALLS)
    for row, call in zip(rows, CALLS, strict=True):
        assert row.startswith(f"| {call.library} | ")
    libraries = [call for call in CALLS[len(STANDARD) :] if is_here(call)]
    assert {row for row in table(libraries).splitlines() if row} <= set(rows)


def test_the_table_is_as_large_as_was_asked_for() -> None:
    assert len(CALLS) >= 60
    assert len({call.library for call in CALLS}) >= 30
