"""Made-up programs without dependence on data: what is told is what is read when they run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from monocontext.engine.hints import CodeHints, code_hints, read_block
from tests.budget import examples
from tests.engine.hints.recording import make_text, reads_of, told

TEXT = make_text(60_011)
N = len(TEXT)
LINES = len(TEXT.splitlines())


@pytest.fixture(scope="module", autouse=True)
def plenty_of_work() -> Iterator[None]:
    """Equality is asked for here, not thrift: four loops in loops may use up what a block is given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_hints, "WORK", 10**6)
        patch.setattr(code_hints, "_REPLY_WORK", 10**6)
        yield


place = st.integers(-N - 50, N + 50)
width = st.integers(1, 9_000)
step = st.integers(700, 20_000)
word = st.sampled_from(["ERROR", "user_3", "Section", "nothing", "e"])


@st.composite
def straight(draw: st.DrawFn) -> str:
    a, b, w = draw(place), draw(place), draw(width)
    start, stop = draw(st.sampled_from([("", a), (a, ""), (a, b), (abs(a), abs(a) + w)]))
    return draw(
        st.sampled_from(
            [
                f"context[{start}:{stop}]",
                f"x = context[{start}:{stop}][10:20].lower()",
                f"context[{abs(a) % N}]",
                f"at = len(context) // {w} + {w}\ncontext[at - {w}:at + {w}]",
                f"text = context\nn = len(text)\ntext[n - {w}:n - {w // 2}]",
                f"print(f'{{context[{start}:{stop}]}} {{len(context):,}}')",
                f"if len(context) > {abs(a)}:\n    context[:{w}]\nelse:\n    context[-{w}:]",
                f"context.lower().find({draw(word)!r}, {a})",
                f"context.rfind({draw(word)!r}, {a}, {b})",
                f"{draw(word)!r} in context",
                f"context.splitlines()[{w % 50}:{w % 70}]",
                f"context.lines[-{w % 50 + 1}:]",
            ]
        )
    )


@st.composite
def loop(draw: st.DrawFn) -> str:
    s, w, first = draw(step), draw(width), draw(st.integers(0, N))
    small = draw(st.integers(400, 700))
    body = draw(
        st.sampled_from(
            [
                f"context[i:i + {w}]",
                f"context[i:i + {s}]",
                f"context[max(0, i - {w}):i + {w}]",
                f"context[i:min(i + {w}, len(context))]",
                f"end = i + {w}\n    part = context[i:end]\n    total += len(part)",
                f"context[i:i + 5]\n    context[i + 10:i + {w}]",
                f"if i % {2 * s} == 0:\n        context[i:i + {w}]",
                f"for j in range(3):\n        context[i + j * {w}:i + j * {w} + 50]",
            ]
        )
    )
    head = draw(
        st.sampled_from(
            [
                f"for i in range(0, len(context), {s}):",
                f"for i in range(0, len(context), {small}):",
                f"for i in range({first}, {first} + {10 * small}, {small}):",
                f"for i in range(len(context), 0, -{s}):",
                f"for i in [{first}, {w}, {s}]:",
                f"for i in (k * {s} for k in range(5)):",
            ]
        )
    )
    after = draw(
        st.sampled_from(
            [
                f"context[total:total + {w}]",
                f"context[i:i + {w}]",
                "pass",
            ]
        )
    )
    return f"total = 0\n{head}\n    {body}\n{after}"


@st.composite
def while_loop(draw: st.DrawFn) -> str:
    s, w, small = draw(step), draw(width), draw(st.integers(150, 700))
    return draw(
        st.sampled_from(
            [
                f"i = 0\nwhile i < len(context):\n    context[i:i + {w}]\n    i += {s}\ncontext[i - 5:i]",
                f"i = 0\nwhile i < len(context):\n    context[i:i + {w}]\n    i += {small}\ncontext[i - 5:i]",
                f"i = 0\nwhile True:\n    p = context[i:i + {small}]\n    if not p:\n        break\n    i += len(p)",
                f"i, n = 0, len(context)\nwhile i < n:\n    e = min(i + {small}, n)\n    context[i:e]\n    i = e",
                f"e = len(context)\nwhile e > 0:\n    b = max(0, e - {small})\n    context[b:e]\n    e = b",
                f"k = 0\nwhile k * {s} < len(context):\n    context[k * {s}:(k + 1) * {s}]\n    k = k + 1",
            ]
        )
    )


@settings(max_examples=examples(250))
@given(st.lists(st.one_of(straight(), loop(), while_loop()), min_size=1, max_size=4))
def test_a_program_reads_what_was_told(parts: list[str]) -> None:
    source = "\n".join(parts)
    note(source)
    hints = read_block(source, N, lines=LINES)
    if len(hints) < 256:
        assert set(told(hints)) == set(reads_of(source, TEXT))
        stream = CodeHints(N, lines=LINES, fenced=False)
        early = stream.feed(source) + stream.end()
        assert len(early) == 256 or set(told(early)) >= set(told(hints))
