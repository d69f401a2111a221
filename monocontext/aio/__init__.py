"""Asynchronous reads of texts.

    from monocontext.aio import AsyncMonocontext

    async with AsyncMonocontext.open("s3://bucket/prefix") as context:
        await context[1_000:2_000], await context.find("needle")
        async for hit in context.grep("needle"):
            print(hit.line_number, hit.line)

The synchronous engine runs in greenlets, in the thread of the event loop. Where it would block, its greenlet lets the
loop continue. Needs the extra `monocontext[async]`.
"""

from __future__ import annotations

from monocontext.errors import install_line

try:
    from monocontext.aio.text import AsyncMonocontext
except ModuleNotFoundError as error:
    if error.name != "greenlet":
        raise
    raise ModuleNotFoundError(f"monocontext.aio needs greenlet: {install_line('async')}", name="greenlet") from None

__all__ = ["AsyncMonocontext"]
