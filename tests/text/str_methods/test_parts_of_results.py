"""Code that takes a part of a result at once reads that part, also of a text below the limit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore

TEXT = "\n".join(f"Line {number} of the text, é" for number in range(100_000))
FRAME_BYTES = 64 << 10


@pytest.fixture(scope="module")
def store() -> Iterator[CountingStore]:
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    publish(TEXT, store, frame_bytes=FRAME_BYTES, codec="raw")
    yield CountingStore(store)
    forget(name)


PARTS = {
    "len(text.split('\\n'))": 0, "text.split('\\n')[0]": 1, "text.split('\\n')[-1]": 2, "text.split('\\n')[k]": 2,
    "text.split('\\n')[50_000]": 2, "text.split('\\n')[:5]": 2, "text.split('\\n')[-3:]": 2, "text.split()[0]": 16,
    "next(iter(text.split('\\n')))": 16, "next(iter(text.splitlines()))": 16, "text.splitlines()[:2]": 16,
    "text.split('of')[3]": 16, "text.replace('e', 'x')[:100]": 16, "text.replace('e', 'x')[7]": 16,
    "text.upper()[:100]": 16, "text.lower()[5:50]": 16, "text.casefold()[0]": 16,
}  # fmt: skip
"""Frames at most."""
WHOLE = (
    "text.split('\\n')", "len(text.splitlines())", "text.replace('e', 'x')", "text.replace('e', 'x')[-9:]", "text.lower()",
    "[text.split('\\n')][0]", "(text.split('\\n'), 1)[0]", "list(map(lambda t: t.split('\\n'), [text]))[0]",
    "[t.replace('e', 'x') for t in [text]][0]", "text.split('\\n').copy()[0]", "sorted(text.split('\\n'))[0]", "text.split('of')[-1]",
    "(lambda len: len(text.split('\\n')))(type)", "text.split('\\n', 2)[0]", "text.replace('e', 'x', 3)[:9]",
)  # fmt: skip


def evaluate(code: str, text: object) -> object:
    """What the code gives in a function and at the top, which compile to different instructions."""
    names = {"text": text, "k": 3}
    exec(f"def inner(text, k):\n    return {code}\nfound, other = {code}, inner(text, k)", names)
    assert names["found"] == names["other"]
    return names["found"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [*PARTS, *WHOLE])
def test_it_is_what_the_str_gives(store: CountingStore, code: str) -> None:
    expected = evaluate(code, TEXT)
    with Monocontext.open(store) as text:
        store.reset()
        found = evaluate(code, text)
        assert found == expected
        assert type(found) is type(expected)
        read = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
        if code in PARTS:
            assert read <= PARTS[code] * FRAME_BYTES
        else:
            assert read >= len(TEXT.encode()) * 0.9
