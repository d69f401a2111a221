"""Choose the certificates that connections trust: the configured ones, or those that come with botocore."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext


def make_tls_context(ca_bundle: str | None) -> SSLContext:
    """A context that trusts the file or folder `ca_bundle`, shared by all of this process until the file changes."""
    path = ca_bundle or _bundled_path()
    found = os.stat(path)
    return _make(path, found.st_mtime_ns, found.st_size)


@lru_cache(8)
def _make(path: str, _modified: int, _size_bytes: int) -> SSLContext:
    import ssl  # 10 ms that plain HTTP need not pay

    return ssl.create_default_context(capath=path) if os.path.isdir(path) else ssl.create_default_context(cafile=path)


def _bundled_path() -> str:
    """The list that botocore uses: certifi's where that is installed, else its own. Does not import botocore."""
    from importlib.util import find_spec

    if find_spec("certifi") is not None:
        from certifi import where

        return str(where())
    botocore = find_spec("botocore")
    assert botocore is not None
    assert botocore.origin is not None
    return os.path.join(os.path.dirname(botocore.origin), "cacert.pem")
