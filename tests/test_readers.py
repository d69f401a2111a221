"""Libraries that read through fsspec read texts: `make test-libraries` has them; without it they skip by name."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from monocontext import publish

pytest.importorskip("fsspec", reason="no fsspec here: pip install -e '.[fsspec]'")
ROWS = 30_000
HEADER = "number,word,square\n"
Options = Mapping[str, str]
_load: Callable[[str], Any] = importlib.import_module


def make_csv(rows: int) -> str:
    """Its column `square` is known without reading it."""
    return HEADER + "".join(f"{n},wörd{'x' * (n % 37)},{n * n}\n" for n in range(rows))


def _pandas(url: str, options: Options, rows: int) -> int:
    return int(_load("pandas").read_csv(url, storage_options=options)["square"].sum())


def _pandas_head(url: str, options: Options, rows: int) -> int:
    return int(_load("pandas").read_csv(url, storage_options=options, nrows=1000)["square"].sum())


def _polars(url: str, options: Options, rows: int) -> int:
    with _load("fsspec").open(url, **options) as file:
        return int(_load("polars").read_csv(file)["square"].sum())


def _duckdb(url: str, options: Options, rows: int) -> int:
    return int(_ask_duckdb(url, options, "sum(square)", "true"))


def _duckdb_head(url: str, options: Options, rows: int) -> int:
    return int(_ask_duckdb(url, options, "square", "number = 7", " limit 1"))


def _ask_duckdb(url: str, options: Options, what: str, where: str, limit: str = "") -> Any:
    with closing(_load("duckdb").connect()) as connection:
        connection.register_filesystem(_load("fsspec").url_to_fs(url, **options)[0])
        found = connection.execute(f"select {what} from read_csv('{url}') where {where}{limit}").fetchone()
    assert found
    return found[0]


def _dask(url: str, options: Options, rows: int) -> int:
    frame = _load("dask.dataframe").read_csv(url, storage_options=options, blocksize=4 << 20)
    return int(frame["square"].sum().compute(scheduler="threads"))


def _dask_partition(url: str, options: Options, rows: int) -> int:
    frame = _load("dask.dataframe").read_csv(url, storage_options=options, blocksize=4 << 20)
    last = frame.get_partition(frame.npartitions - 1)["number"]
    return int(last.compute(scheduler="threads").iloc[-1])


def _datasets(url: str, options: Options, rows: int) -> int:
    return sum(int(batch["square"].to_numpy().sum()) for batch in _stream(url, options).iter(50_000))


def _datasets_head(url: str, options: Options, rows: int) -> int:
    return int(next(iter(_stream(url, options).take(1)))["square"][0].as_py())


def _stream(url: str, options: Options) -> Any:
    datasets = _load("datasets")
    stream = datasets.load_dataset("csv", data_files=url, storage_options=options, split="train", streaming=True)
    return stream.with_format("arrow")


def _pyarrow(url: str, options: Options, rows: int) -> int:
    csv, compute = _load("pyarrow.csv"), _load("pyarrow.compute")
    with _load("fsspec").open(url, **options) as file:
        return int(compute.sum(csv.read_csv(file)["square"]).as_py())


def squares(rows: int) -> int:
    """0 + 1 + 4 + ... of so many rows."""
    return (rows - 1) * rows * (2 * rows - 1) // 6


READERS: dict[str, tuple[Callable[[str, Options, int], int], Callable[[int], int]]] = {
    "pandas: all rows": (_pandas, squares),
    "pandas: 1,000 rows": (_pandas_head, lambda _: squares(1000)),
    "polars: all rows": (_polars, squares),
    "pyarrow: all rows": (_pyarrow, squares),
    "duckdb: all rows": (_duckdb, squares),
    "duckdb: one row near the top": (_duckdb_head, lambda _: 49),
    "dask: all rows": (_dask, squares),
    "dask: the last partition": (_dask_partition, lambda rows: rows - 1),
    "datasets, streaming: all rows": (_datasets, squares),
    "datasets, streaming: one row": (_datasets_head, lambda _: 0),
}
"""What is read, and what it must give for a number of rows."""


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
