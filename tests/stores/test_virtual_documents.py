"""A virtual context of which each frame is a document."""

from __future__ import annotations

from monocontext import Monocontext
from monocontext.testing import CountingStore, virtual_context


def test_each_frame_is_a_document() -> None:
    store = CountingStore(
        virtual_context(1500, "é line\n" * 50, {8: "needle in it", 1499: "end"}, documents=True, filters=True)
    )
    with Monocontext.open(store, shape="dict") as texts:
        assert len(texts) == 1500
        assert store.gets == 1
        assert (texts["frame 8"], texts["frame 1499"], texts["frame 17"]) == ("needle in it", "end", "é line\n" * 50)
        assert [name for name, text in texts.items() if "needle in it" in text] == ["frame 8"]
        assert [len(text) for text in texts.values()] == [
            12 if i == 8 else 3 if i == 1499 else 350 for i in range(1500)
        ]
        assert texts.documents.text_bytes == 1498 * 400 + 12 + 3
