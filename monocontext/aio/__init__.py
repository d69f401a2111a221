"""The same texts for asynchronous programs.

    from monocontext.aio import AsyncMonocontext

    async with AsyncMonocontext.open("s3://bucket/prefix") as context:
        await context[1_000:2_000], await context.find("needle")
        async for hit in context.grep("needle"):
            print(hit.line_number, hit.line)

There is one engine. Here it runs in greenlets of the event loop's thread: where it would wait in a thread, it is put
aside until the loop has what it waits for. Needs the extra `monocontext[async]`.
"""

from __future__ import annotations

from monocontext.aio.text import AsyncMonocontext

__all__ = ["AsyncMonocontext"]
