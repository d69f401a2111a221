"""`--dask ADDRESS`: upload, append, index and grep by a local cluster of real worker processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ran import Cli

from monocontext import Monocontext, append
from monocontext.cli.options import workers
from monocontext.errors import MonocontextError
from monocontext.writing.upkeep.verify import verify

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with (
        warnings.catch_warnings(),
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        yield cluster.scheduler_address
        with distributed.Client(cluster) as client:
            client.wait_for_workers(2, timeout=120)  # Dask cannot end a worker that it is starting again


@pytest.mark.slow
def test_the_commands_do_the_same_by_a_cluster(cli: Cli, address: str, tmp_path: Path) -> None:
    source, context = tmp_path / "log.txt", tmp_path / "context"
    source.write_text("".join(f"{i:08d} request {i * 7919 % 99991:05d} straße\n" for i in range(60_000)))
    cli("upload", source, context, "--frame-bytes", "16K", "--dask", address).fine()
    cli("append", source, context, "--dask", address).fine()
    with Monocontext.open(context) as text:
        assert text == 2 * source.read_text()
    cli("compact", context, "--frame-bytes", "32K").fine()
    with Monocontext.open(context) as text:
        assert text == 2 * source.read_text()
    here = cli("grep", "request 0471[0-9]", context).fine()
    assert here.out.count("\n") > 2
    assert cli("grep", "request 0471[0-9]", context, "--dask", address).fine().out == here.out
    assert cli("grep", "--dask", address, "no-such-request", context).code == 1
    assert "all as recorded" in cli("verify", context).fine().out
    with distributed.Client(address) as client, client.get_executor() as executor:  # Dask hashes the arguments itself
        for _ in range(2):
            append(source, context, executor=executor)
        assert verify(context).ok
    with Monocontext.open(context) as text:
        assert text == 4 * source.read_text()


@pytest.mark.slow
def test_what_a_dead_worker_had_in_hand_is_done_again(address: str, tmp_path: Path) -> None:
    """Work that kills each worker is given up, in one line."""

    def submit(work: Callable[..., str], *given: object) -> str:
        with workers(address) as executor:
            assert executor is not None
            return executor.submit(work, *given).result()

    assert submit(die_once, str(tmp_path / "mark")) == "done"
    with pytest.raises(MonocontextError, match=r"^workers of the Dask scheduler at \S+ died repeatedly [^\n]*$"):
        submit(os._exit, 1)


def die_once(mark: str) -> str:
    try:
        os.mkdir(mark)
    except FileExistsError:
        return "done"
    os._exit(1)


def test_no_scheduler_there(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.cli.options._CONNECT_SECONDS", 0.3)
    source = tmp_path / "log.txt"
    source.write_text("a line\n")
    refused = cli("upload", source, tmp_path / "context", "--dask", "tcp://127.0.0.1:9")
    assert refused.code == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in refused.err
    assert not (tmp_path / "context" / "manifest.json").exists()
