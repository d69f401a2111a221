"""Asynchronous reads of texts.

    from monocontext.aio import AsyncMonocontext

    async with AsyncMonocontext.open("s3://bucket/prefix") as context:
        await context[1_000:2_000], await context.find("needle")
        async for hit in context.grep("needle"):
            print(hit.line_number, hit.line)

Each call runs the synchronous method in a thread of the text, and awaits its future.
"""

from __future__ import annotations

from monocontext.aio.text import AsyncMonocontext

__all__ = ["AsyncMonocontext"]
