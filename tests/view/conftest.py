"""A context with a history, and a server of its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from monocontext import Monocontext, documents, publish, update
from monocontext.view.feed import ContextServer
from tests.browser import chromium as chromium
from tests.browser import served_by
from tests.browser import window as window

NAMES = ("alpha.txt", "beta.txt", "src/gamma.py", "src/delta.py")
TEXTS = {
    name: "".join(f"{name} line {i}{' with a needle' if i == 150 * (k + 1) else ''}\n" for i in range(1, 901))
    for k, name in enumerate(NAMES)
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four documents; the second version replaced one and added one."""
    place = str(tmp_path_factory.mktemp("view") / "context")
    publish(documents((name, text, {"author": "Ada"}) for name, text in TEXTS.items()), place, frame_bytes=20_000)
    changed = TEXTS["beta.txt"].replace("line 7\n", "line VII\n")
    update(place, {"beta.txt": changed, "new.md": "# New\nwords of the new one\n"})
    return place


@pytest.fixture
def context(place: str) -> Iterator[Monocontext]:
    with Monocontext.open(place) as context:
        yield context


@pytest.fixture
def serving() -> Iterator[Callable[[Monocontext], ContextServer]]:
    with served_by(ContextServer) as serve:
        yield serve
