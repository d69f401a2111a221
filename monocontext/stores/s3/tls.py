"""Make TLS contexts that trust the same certificates as botocore. A separate module, as `ssl` takes 10 ms to import."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from importlib.util import find_spec

try:
    from certifi import where as _bundled_path
except ImportError:

    def _bundled_path() -> str:
        botocore = find_spec("botocore")  # without its import, which takes 40 ms
        assert botocore is not None
        assert botocore.origin is not None
        return os.path.join(os.path.dirname(botocore.origin), "cacert.pem")


def make_tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """A context that trusts the certificates in a file or folder, by default those of certifi, else of botocore.

    The whole process shares it until the file changes.
    """
    path = ca_bundle or _bundled_path()
    status = os.stat(path)
    return _load(path, status.st_mtime_ns, status.st_size)


@lru_cache(8)
def _load(path: str, _modified: int, _size_bytes: int) -> ssl.SSLContext:
    return ssl.create_default_context(capath=path) if os.path.isdir(path) else ssl.create_default_context(cafile=path)
