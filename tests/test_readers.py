"""Libraries that read through fsspec read texts: `make test-libraries` has them; without it they skip by name."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.readers import READERS, make_csv
from monocontext import publish

pytest.importorskip("fsspec", reason="no fsspec here: pip install 'monocontext[fsspec]'")
ROWS = 30_000


@pytest.mark.filterwarnings("ignore")  # of libraries
@pytest.mark.parametrize("name", READERS)
def test_a_library_reads_a_text(name: str, tmp_path: Path) -> None:
    library = name.partition(":")[0].partition(",")[0]
    if find_spec(library) is None or (library == "dask" and find_spec("pandas") is None):
        assert "MONOCONTEXT_REQUIRE_LIBRARIES" not in os.environ, f"{library} is not installed"
        pytest.skip(f"{library} is not installed")
    publish(make_csv(ROWS), tmp_path / "ctx", frame_bytes=1 << 14, segment_bytes=200_000)
    read, expected = READERS[name]
    assert read("monocontext://text.csv", {"fo": str(tmp_path / "ctx")}, ROWS) == expected(ROWS)
