"""The S3 store: credentials, endpoint, ranged reads over our own transport, and uploads by boto3."""

from __future__ import annotations

from monocontext.stores.s3.store import S3Store

__all__ = ["S3Store"]
