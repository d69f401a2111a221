"""Asynchronous reads of texts: `async with AsyncMonocontext.open("s3://bucket/prefix") as context`."""

from monocontext.aio.text import AsyncMonocontext

__all__ = ["AsyncMonocontext"]
