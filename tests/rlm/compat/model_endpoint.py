"""A stand-in for a model behind an OpenAI-compatible endpoint: so many answers at once, so many seconds for each.

`python -m tests.rlm.compat.model_endpoint SLOTS SECONDS` prints its port and serves until its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rlm.prompts.examples import conversation

TURNS = ("```repl\nprint(context.find('needle'))\n```", "```repl\nFINAL(context[:4])\n```")
"""What it says to a conversation with no answer of it yet, and with one."""
_PIECE_CHARACTERS = 12


@contextmanager
def serve_model(slots: int, seconds: float) -> Iterator[str]:
    """The base URL of a stand-in, in a process of its own."""
    command = [sys.executable, "-m", "tests.rlm.compat.model_endpoint", str(slots), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.stdin.close()


async def _serve(slots: int, seconds: float) -> None:
    free = asyncio.Semaphore(slots)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                request = json.loads(await reader.readexactly(size))
                async with free:
                    await asyncio.sleep(seconds)
                writer.write(_reply(request))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


def _reply(request: dict[str, Any]) -> bytes:
    said = sum(message["role"] == "assistant" for message in conversation(request["messages"]))
    text = TURNS[min(said, len(TURNS) - 1)]
    pieces = [text[i : i + _PIECE_CHARACTERS] for i in range(0, len(text), _PIECE_CHARACTERS)]
    usage = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    about = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    lines = [f"data: {json.dumps(about | chunk)}\n\n" for chunk in (*chunks, {"choices": [], "usage": usage})]
    body = ("".join(lines) + "data: [DONE]\n\n").encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2])))
