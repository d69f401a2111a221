"""`verify` counts documents too, also those that several workers read a part of each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from monocontext.format.manifest import ROOT_KEY, generation_key
from monocontext.records import replace
from monocontext.stores.protocol import Store
from monocontext.writing.documents import documents
from monocontext.writing.publish import publish
from monocontext.writing.upkeep.verify import verify

from .upkept import FRAME_BYTES, memory, root


def test_counts_that_are_not_those_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts end inside of the first two documents, and the last two lie in one part."""
    monkeypatch.setattr("monocontext.writing.upkeep.verify.CHECKED_BYTES", 1)
    texts = ["é" * 5000, "e\n" * 2500, "", "short é", "short\ne"]
    stores: list[Store] = [memory(), memory()]
    for store, order in zip(stores, (texts, [texts[1], texts[0], "", texts[4], texts[3]]), strict=True):
        publish(
            documents({str(number): text for number, text in enumerate(order)}.items()),
            store,
            frame_bytes=FRAME_BYTES,
            segment_bytes=100,
            codec="raw",
        )
    with ThreadPoolExecutor(2) as pool:
        assert verify(stores[0], executor=pool).problems == []
        wrong = replace(root(stores[0]), documents=root(stores[1]).documents).to_bytes()
        for key in (ROOT_KEY, generation_key(1)):
            stores[0].put(key, wrong)
        problems = verify(stores[0]).problems
        assert [line.split(":")[0] for line in problems] == [f"document {n} ('{n}')" for n in (0, 1, 3, 4)]
        assert "counts differ: expected (5000, 2500), found (10000, 0)" in problems[0]
        assert sorted(verify(stores[0], executor=pool).problems) == sorted(problems)
