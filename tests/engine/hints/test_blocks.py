"""Blocks as models write them: what is told beforehand is what is read when they run."""

from __future__ import annotations

import pytest

from monocontext.engine.hints import CodeHints, Hint, Lines, Needle, Pattern, Ranges, read_block
from tests.engine.hints.model_blocks import DEPENDENT, EXACT, NOT_FOLLOWED
from tests.engine.hints.recording import make_text, reads_of, told

TEXT = make_text(999_703)
LINES = len(TEXT.splitlines())


def _fed(source: str, size: int = 4) -> list[Hint]:
    hints = CodeHints(len(TEXT), lines=LINES)
    reply = f"Let me look.\n\n```repl\n{source}\n```\n"
    return [hint for i in range(0, len(reply), size) for hint in hints.feed(reply[i : i + size])]


@pytest.mark.parametrize("name", EXACT)
def test_a_block_reads_what_was_told(name: str) -> None:
    source = EXACT[name]
    hints = read_block(source, len(TEXT), lines=LINES)
    real = reads_of(source, TEXT)
    assert set(told(hints)) == set(real)
    if all(isinstance(hint, Ranges) and hint.is_literal for hint in hints):
        assert told(hints) == real  # in the order of execution


@pytest.mark.parametrize("name", EXACT)
def test_streaming_tells_the_same(name: str) -> None:
    source = EXACT[name]
    assert set(told(_fed(source))) == set(told(read_block(source, len(TEXT), lines=LINES)))


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_depends_on_the_text_is_not_guessed(name: str) -> None:
    source, wanted = DEPENDENT[name]
    assert " ".join(map(_short, read_block(source, len(TEXT), lines=LINES))) == wanted
    assert {_short(hint) for hint in _fed(source)} == {
        _short(hint) for hint in read_block(source, len(TEXT), lines=LINES)
    }


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_of_what_is_not_followed_nothing_wrong_is_told(name: str) -> None:
    source = NOT_FOLLOWED[name]
    assert set(told(read_block(source, len(TEXT), lines=LINES)) + told(_fed(source))) <= set(reads_of(source, TEXT))


def test_literal_zooms_are_read_as_told() -> None:
    """The accuracy that the project promises is 85 %; over these blocks it is 100."""
    right, wrong = 0, []
    for source in [*EXACT.values(), *NOT_FOLLOWED.values(), *(source for source, _ in DEPENDENT.values())]:
        real = set(reads_of(source, TEXT))
        for hint in _fed(source):
            if isinstance(hint, Ranges) and hint.is_literal:
                right += next(iter(hint)) in real
                wrong += [(source, hint)] if next(iter(hint)) not in real else []
    assert not wrong
    assert right > 30


def _short(hint: Hint) -> str:
    match hint:
        case Ranges(count=1):
            return f"Ranges({hint.start}, {hint.width})"
        case Ranges():
            return f"Ranges({hint.start}, {hint.width}, x{hint.count})"
        case Needle():
            return f"Needle({hint.text})"
        case Pattern():
            return f"Pattern({hint.pattern})"
        case Lines():
            return f"Lines({hint.start}, {hint.stop})"
    return "Whole"
