"""Libraries that read through fsspec read texts: `make test-libraries` has them; without it they skip by name."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from monocontext import publish

pytest.importorskip("fsspec", reason="no fsspec here: pip install -e '.[fsspec]'")
URL = "monocontext://text.csv"
TEXT = "number,word,square\n" + "".join(f"{n},wörd{'x' * (n % 37)},{n * n}\n" for n in range(30_000))
_load: Callable[[str], Any] = importlib.import_module


def _pandas(options: dict[str, str]) -> Any:
    return _load("pandas").read_csv(URL, storage_options=options)["square"].sum()


def _polars(options: dict[str, str]) -> Any:
    with _load("fsspec").open(URL, **options) as file:
        return _load("polars").read_csv(file)["square"].sum()


def _pyarrow(options: dict[str, str]) -> Any:
    with _load("fsspec").open(URL, **options) as file:
        return _load("pyarrow.compute").sum(_load("pyarrow.csv").read_csv(file)["square"]).as_py()


def _duckdb(options: dict[str, str]) -> Any:
    with closing(_load("duckdb").connect()) as connection:
        connection.register_filesystem(_load("fsspec").url_to_fs(URL, **options)[0])
        return connection.execute(f"select sum(square) from read_csv('{URL}')").fetchone()[0]


def _dask(options: dict[str, str]) -> Any:
    frame = _load("dask.dataframe").read_csv(URL, storage_options=options, blocksize=1 << 18)
    return frame["square"].sum().compute(scheduler="threads")


def _datasets(options: dict[str, str]) -> Any:
    load, named = _load("datasets").load_dataset, {"data_files": URL, "storage_options": options}
    stream = load("csv", split="train", streaming=True, **named).with_format("arrow")
    return sum(int(batch["square"].to_numpy().sum()) for batch in stream.iter(50_000))


READERS = {each.__name__[1:]: each for each in (_pandas, _polars, _pyarrow, _duckdb, _dask, _datasets)}


@pytest.mark.filterwarnings("ignore")  # of libraries
@pytest.mark.parametrize("library", READERS)
def test_a_library_reads_a_text(library: str, tmp_path: Path) -> None:
    if find_spec(library) is None or (library == "dask" and find_spec("pandas") is None):
        assert "MONOCONTEXT_REQUIRE_LIBRARIES" not in os.environ, f"{library} is not installed"
        pytest.skip(f"{library} is not installed")
    publish(TEXT, tmp_path / "ctx", frame_bytes=1 << 14, segment_bytes=200_000)
    assert int(READERS[library]({"fo": str(tmp_path / "ctx")})) == sum(n * n for n in range(30_000))
