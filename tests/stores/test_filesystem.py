"""Filesystems of fsspec as stores: the suite of every store over its memory and its files."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.errors import AccessDenied, AlreadyExists, InvalidUrl, NotFound
from monocontext.stores import is_within, open_store
from monocontext.stores.protocol import Store
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.verify import verify
from tests.stores import test_conformance

fsspec = pytest.importorskip("fsspec", reason="no fsspec here: pip install -e '.[fsspec]'")

globals().update({name: item for name, item in vars(test_conformance).items() if name.startswith("test_")})


@pytest.fixture(params=["memory", "file"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "seaweedfs":
        pytest.skip("no fsspec there")
    place = f"memory://{uuid.uuid4().hex}/x" if request.param == "memory" else f"file://{tmp_path}"
    store = open_store(f"fsspec+{place}")
    yield store
    store.close()


def test_pickle(any_store: Store) -> None:
    any_store.put("a", b"x")
    assert pickle.loads(pickle.dumps(any_store)).get("a") == any_store.get("a")


def test_two_kinds_of_writers_share_a_lock(any_store: Store) -> None:
    publish("one\n", any_store.url)
    append("two\n", any_store.url)
    if any_store.url.startswith("fsspec+file:"):
        append("three\n", any_store.url.removeprefix("fsspec+"))
    else:
        append("three\n", any_store.url)
    with Monocontext.open(any_store.url) as context:
        assert str(context) == "one\ntwo\nthree\n"
    assert verify(any_store).problems == []


def test_a_filesystem_without_exclusive_creation_is_read_only() -> None:
    store = open_store("fsspec+data://x")
    for write in (lambda: store.put("a", b"x", if_absent=True), lambda: store.delete("a")):
        with pytest.raises(AccessDenied, match="is read-only"):
            write()


def test_a_file_that_changes_between_two_reads_is_noticed(tmp_path: Path) -> None:
    """Bytes of another version are an error, whoever writes them."""
    store = open_store(f"fsspec+file://{tmp_path}")
    etag = store.put("a", b"0123456789")
    (tmp_path / "a").write_bytes(b"0123456789 and more")
    assert store.head("a").etag != etag
    with pytest.raises(AlreadyExists):
        store.put("a", b"x", if_absent=True)


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


def test_nothing_there() -> None:
    with pytest.raises(NotFound):
        Monocontext.open(f"fsspec+memory://{uuid.uuid4().hex}")


def test_an_index_reads_below_its_place_alone() -> None:
    """One place holds many owners' files on Hugging Face, and all files of a machine."""
    assert is_within("hf://datasets/a/one/x", "hf://datasets/a/one")
    assert not is_within("hf://datasets/b/two/x", "hf://datasets/a/one")
    assert not is_within("fsspec+file:///etc/passwd", "fsspec+file:///data")
