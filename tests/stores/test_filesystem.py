"""Filesystems of fsspec as stores: what the suite of every store says of reading, over its memory and its files."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import AccessDenied, InvalidUrl
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.writing.publish import publish
from monocontext.writing.upkeep.verify import verify
from tests.stores import test_conformance

fsspec = pytest.importorskip("fsspec", reason="no fsspec here: pip install -e '.[fsspec]'")

READING = [
    *("what_is_put_comes_back", "range_past_the_end_is_damage", "pinned_range_of_a_replaced_object", "empty_object"),
    *("nothing_there", "odd_keys", "head_agrees_with_put_and_list", "delete", "list_is_in_key_order_and_by_prefix"),
]
globals().update({f"test_{name}": getattr(test_conformance, f"test_{name}") for name in READING})


@pytest.fixture(params=["memory", "file"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose files are written by fsspec itself."""
    place = f"memory://{uuid.uuid4().hex}/x" if request.param == "memory" else f"file://{tmp_path}"
    store: Any = open_store(f"fsspec+{place}")

    def put(key: str, data: bytes, **_: object) -> str:
        path = store._path(key)
        store._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        store._fs.pipe_file(path, data)
        return str(store.head(key).etag)

    def delete(key: str, **_: object) -> None:
        if store._fs.isfile(store._path(key)):
            store._fs.rm_file(store._path(key))

    monkeypatch.setattr(store, "put", put)
    monkeypatch.setattr(store, "delete", delete)
    yield store
    store.close()


def test_pickle(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    store = open_store(f"fsspec+file://{tmp_path}")
    assert pickle.loads(pickle.dumps(store)).get("a") == store.get("a")


def test_a_text_is_read_and_verified(tmp_path: Path) -> None:
    publish("one\n", tmp_path)
    with Monocontext.open(f"fsspec+file://{tmp_path}") as context:
        assert str(context) == "one\n"
    assert verify(open_store(f"fsspec+file://{tmp_path}")).problems == []


@pytest.mark.parametrize("place", ["data://x", "memory://x", "file:///tmp/x"])
def test_a_filesystem_is_read_only(place: str) -> None:
    store = open_store(f"fsspec+{place}")
    for write in (lambda: store.put("a", b"x", if_absent=True), lambda: store.delete("a")):
        with pytest.raises(AccessDenied, match="is read-only"):
            write()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("fsspec+nosuch://x/y", "Protocol not known"),
        ("fsspec+sftp://user:secret@host/x", "the URL must not contain a password"),
        ("fsspec+://x", "expected"),
    ],
)
def test_no_place(url: str, said: str) -> None:
    with pytest.raises(InvalidUrl, match=said) as caught:
        open_store(url)
    assert "\n" not in str(caught.value)
