"""The S3 store: credentials, endpoint, ranged reads over our own transport, and uploads by boto3.

Imported on first use: a hook that asks for keys and a route alone should not wait for the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monocontext.stores.s3.store import S3Store

__all__ = ["S3Store"]


def __getattr__(name: str) -> Any:
    if name == "S3Store":
        from monocontext.stores.s3.store import S3Store

        return S3Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
