"""The stores of other clouds: the suite of every store, and what is special to them.

Azure is played by Azurite, Microsoft's own emulator (`make test-clouds` installs it; without it these tests skip),
Google and the web by the stand-in of S3 (`gcs_server`), and S3 through obstore by SeaweedFS.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.errors import AccessDenied, AlreadyExists, ContextChanged, NotFound, Unsupported
from monocontext.stores import open_store, split_object
from monocontext.stores.address import parse
from monocontext.stores.protocol import Store
from monocontext.testing import S3StandIn
from monocontext.testing.http_faults import whole
from monocontext.writing.publish import publish
from tests.stores import emulators, test_conformance
from tests.stores.gcs_server import GcsStandIn

pytest.importorskip("obstore", reason="no obstore here: pip install -e '.[obstore]'")
from monocontext.stores.cloud import CloudStore

_OF_OTHER_STORES = ("test_list_of_more_than_a_page", "test_backslash_is_a_letter")
globals().update(
    {
        name: item
        for name, item in vars(test_conformance).items()
        if name.startswith("test_") and name not in _OF_OTHER_STORES
    }
)
TEXT = "".join(f"{n:06d} a line of a text that lies in some cloud\n" for n in range(20_000))


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if emulators.find_azurite() is None:
        pytest.skip("no azurite-blob on the PATH: `make test-clouds` installs it")
    with emulators.azurite(tmp_path_factory.mktemp("azurite")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def gcs() -> Iterator[str]:
    with GcsStandIn() as server:
        yield server.endpoint


@pytest.fixture(params=["azure", "gcs"])
def any_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty store at a fresh place of each cloud."""
    fresh = f"test-{uuid.uuid4().hex[:12]}"
    if request.param == "azure":
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", emulators.ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", emulators.KEY)
        url, options = f"az://{emulators.CONTAINER}/{fresh}", {"endpoint": request.getfixturevalue("azure")}
    elif request.param == "gcs":
        monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "any")
        url, options = f"gs://bucket/{fresh}", {"endpoint": request.getfixturevalue("gcs")}
    else:
        pytest.skip(f"{request.param} is tested beside")
    store = open_store(url, **options)
    yield store
    store.close()


def test_a_conditional_delete_takes_that_version_alone(any_store: Store) -> None:
    old = any_store.put("a", b"one")
    new = any_store.put("a", b"two")
    with pytest.raises(AlreadyExists):
        any_store.delete("a", if_match=old)
    assert any_store.get("a").data == b"two"
    any_store.delete("a", if_match=new)
    any_store.delete("a", if_match=new)
    with pytest.raises(NotFound):
        any_store.get("a")


FORKED = """
import multiprocessing, os, sys
from monocontext.errors import StoreFailure
from monocontext.stores import open_store

url, options = sys.argv[1], {"endpoint": sys.argv[2]} if len(sys.argv) > 2 else {}
inherited = open_store(url, **options)

def attempt(what, act):
    try:
        act()
    except StoreFailure as error:
        print(what, "spawn" in str(error), "\\n" in str(error), flush=True)
    else:
        print(what, "went on", flush=True)

def read(store):
    try:
        store.get("absent")
    except FileNotFoundError:
        pass

def in_child(tell):
    attempt(tell + "inherited", lambda: read(inherited))
    attempt(tell + "opened", lambda: open_store(url, **options))
    attempt(tell + "opened elsewhere", lambda: open_store("az://container@account/x"))

if os.fork() == 0:  # nothing was sent so far: here all works
    read(open_store(url, **options))
    print("before: fine", flush=True)
    os._exit(0)
os.wait()
read(inherited)
if os.fork() == 0:
    in_child("child: ")
    if os.fork() == 0:
        in_child("grandchild: ")
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
process = multiprocessing.get_context("fork").Process(target=in_child, args=("pool: ",))
process.start()
process.join()
read(open_store(url, **options))
print("parent: fine", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_whoever_is_forked_is_told_at_once(gcs: str) -> None:
    """A store that is opened there too: obstore would wait for threads that the fork has lost."""
    url, environment = f"gs://bucket/{uuid.uuid4().hex}", {**os.environ, "GOOGLE_BEARER_TOKEN": "any"}
    done = subprocess.run(
        [sys.executable, "-c", FORKED, url, gcs], env=environment, capture_output=True, text=True, timeout=60
    )
    said = [f"{who}: {what} True False" for who in ("child", "grandchild", "pool") for what in WAYS_THERE]
    assert done.stdout.splitlines() == ["before: fine", *said, "parent: fine"], done.stderr[-2000:]


WAYS_THERE = ("inherited", "opened", "opened elsewhere")


# -- the web ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def web(tmp_path: Path) -> Iterator[S3StandIn]:
    """What reads a folder as nginx does; the text is to lie at `texts/one`."""
    with S3StandIn(tmp_path, bucket="texts") as server:
        yield server


def test_a_context_on_a_web_server(web: S3StandIn, tmp_path: Path) -> None:
    url, folder = f"{web.endpoint}/texts/one", tmp_path / "one"
    publish(TEXT, folder, segment_bytes=200_000, codec="raw", frame_bytes=1 << 14)
    with Monocontext.open(url) as context:
        assert context.find("019999") == TEXT.find("019999")
        assert str(context) == TEXT
    with pytest.raises(NotFound, match=r"no context at .*/texts/two"):
        Monocontext.open(f"{web.endpoint}/texts/two")
    store = open_store(url)
    for write in (lambda: store.put("a", b"x"), lambda: store.delete("manifest.json")):
        with pytest.raises(AccessDenied, match="is read-only"):
            write()
    with pytest.raises(Unsupported, match="cannot list"):
        list(store.list())
    blob = store.get("manifest.json")
    (folder / "manifest.json").write_bytes(b"something else")
    with pytest.raises(ContextChanged):
        store.get_range("manifest.json", 0, 3, etag=blob.etag)


def test_a_web_server_without_ranges_is_refused_at_open(web: S3StandIn, tmp_path: Path) -> None:
    publish(TEXT, tmp_path / "one")
    web.faults.add(whole(), verb="*", times=None)
    with pytest.raises(Unsupported, match="does not support ranges"):
        Monocontext.open(f"{web.endpoint}/texts/one")


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("gs://bucket/a/b/", "gs://bucket/a/b"),
        ("gcs://bucket", "gs://bucket"),
        ("az://container/a", "az://container/a"),
        ("abfs://container@account.dfs.core.windows.net/a", "az://container@account.dfs.core.windows.net/a"),
        ("https://host.test:8443/a", "https://host.test:8443/a"),
    ],
)
def test_addresses(url: str, found: str) -> None:
    assert str(parse(url)) == found


def test_another_azure_than_the_public_one() -> None:
    """Requests to a government's cloud went to an account of the same name in the public one."""
    store = open_store("abfss://container@account.dfs.core.usgovcloudapi.net/a", anonymous=True)
    assert isinstance(store, CloudStore)
    assert store._read_store.config["endpoint"] == "https://account.blob.core.usgovcloudapi.net"


def test_an_option_that_a_cloud_does_not_have() -> None:
    with pytest.raises(TypeError, match="unknown option 'region' for gs://bucket: options are endpoint, anonymous"):
        open_store("gs://bucket", region="x")


def test_keys_of_the_web_are_decoded() -> None:
    assert split_object("https://host/a%20b/%C3%BC%2525.txt") == ("https://host", "a b/ü%25.txt")
