"""Count the bytes that libraries read of one CSV: as a text over `monocontext://`, and as an object over s3fs.

    make test-libraries && PATH=.venv/bin:$PATH .venv-libraries/bin/python -m benchmarks.readers

Both lie in SeaweedFS, behind a relay that counts what comes back, headers included.
"""

from __future__ import annotations

import importlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from monocontext import publish
from monocontext.testing import SeaweedServer

ROWS = 1_000_000
HEADER = "number,word,square\n"
LIBRARIES = ("pandas", "polars", "duckdb", "dask", "datasets", "pyarrow")
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


@contextmanager
def _relay(port: int) -> Iterator[tuple[int, list[int]]]:
    """A port that leads to `port`, and the sizes of all that came back through it."""
    back: list[int] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket, sizes: list[int] | None) -> None:
        try:
            while data := source.recv(1 << 18):
                target.sendall(data)
                if sizes is not None:
                    sizes.append(len(data))
            target.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()  # one side has hung up

    def accept() -> None:
        while True:
            try:
                client = listening.accept()[0]
            except OSError:
                return  # the relay was closed
            server = socket.create_connection(("127.0.0.1", port))
            for one in ((client, server, None), (server, client, back)):
                threading.Thread(target=pump, args=one, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1], back
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def main() -> None:
    text = make_csv(ROWS)
    print(", ".join(f"{name} {_load(name).__version__}" for name in ("fsspec", "s3fs", *LIBRARIES)))
    with SeaweedServer() as server, _relay(int(server.endpoint.rpartition(":")[2])) as (port, back):
        os.environ.update(server.environment)
        body = text.encode()
        server.client().put_object(Bucket=server.bucket, Key="plain.csv", Body=body, ContentType="application/zip")
        publish(text, server.url("ctx"))
        os.environ["AWS_ENDPOINT_URL_S3"] = f"http://127.0.0.1:{port}"
        print(f"{len(body):,} bytes of CSV\n\n| what is read | s3fs, MB | monocontext, MB |\n|---|---|---|")
        for name, (read, expected) in READERS.items():
            figures = []
            for url, options in ((server.url("plain.csv"), {}), ("monocontext://text.csv", {"fo": server.url("ctx")})):
                _load("fsspec").get_filesystem_class(url.partition(":")[0]).clear_instance_cache()
                before = sum(back)
                assert read(url, options, ROWS) == expected(ROWS), (name, url)
                figures.append((sum(back) - before) / 1e6)
            print(f"| {name} | {figures[0]:.2f} | {figures[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
