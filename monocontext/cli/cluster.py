"""The option `--dask ADDRESS`: let the workers of a Dask cluster do the work of a command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from monocontext.cli.parameters import Option
from monocontext.errors import MonocontextError, install_line

if TYPE_CHECKING:
    from concurrent.futures import Executor

Dask = Annotated[
    str | None, Option(metavar="ADDRESS", help="Let workers of this Dask scheduler do the work, as tcp://host:8786.")
]

_CONNECT_SECONDS = 10  # the time to wait for a Dask scheduler


@contextmanager
def workers(address: str | None) -> Iterator[Executor | None]:
    """Yield the workers of a cluster, which need monocontext too, as an executor. Without an address yield None."""
    if address is None:
        yield None
        return
    from concurrent.futures import CancelledError

    try:
        import distributed
    except ImportError:
        raise MonocontextError(f"--dask needs Dask: {install_line('dask')}") from None
    connect: Any = distributed.Client  # untyped
    try:
        client = connect(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MonocontextError(f"no Dask scheduler at {address}: {error}; `dask scheduler` starts one") from None
    with client, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about large batches of text, which are intended
        try:
            yield client.get_executor(pure=False, retries=2)
        except distributed.KilledWorker as error:
            raise MonocontextError(
                f"workers of the Dask scheduler at {address} died repeatedly on the same task ({error.task}), perhaps "
                "for lack of memory: see their logs"
            ) from None
        except CancelledError:
            raise MonocontextError(f"the Dask scheduler at {address} stopped in the middle: start it again") from None
