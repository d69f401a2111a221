"""Mistakes that a type checker finds: each line marked `error` is one, for mypy and for pyright; no other line is.

`test_typing.py` runs both checkers over this file. It is never imported.
"""

from __future__ import annotations

import re

from monocontext import Monocontext, append, publish
from monocontext.aio import AsyncMonocontext
from monocontext.memory import Memory
from monocontext.sessions import Sessions, open_project
from monocontext.stores import open_store
from monocontext.writing.index_in_place import index
from rlm import RLM, AnthropicLM, OpenAILM
from rlm.compile import compile_sessions


def options(url: str) -> None:
    Monocontext.open(url, cache_byts=3)  # error
    Monocontext.open(url, cache_bytes="3")  # error
    Monocontext.open(url, prefetch="never")  # error
    Monocontext.open(url, unit="lines", end_point="http://127.0.0.1")  # error
    Monocontext.open()  # error
    Monocontext.open(5)  # error
    Monocontext("bucket", "prefix/", cache_byts=3)  # error
    AsyncMonocontext.open(url, cache_byts=3)  # error
    AsyncMonocontext.open(url, workers=None)  # error
    publish("text", url, filter=True)  # error
    publish("text", url, encodng="utf-8")  # error
    publish("text", url, store_options={"end_point": "http://127.0.0.1"})  # error
    append("text", url, header=5)  # error
    index("text", url, replaces=True)  # error
    open_store(url, end_point="http://127.0.0.1")  # error
    open_store(url, transport="tcp")  # error
    Memory.open(url, profil="x")  # error
    Memory.open(url).context(cache_byts=3)  # error
    Sessions.open(url, profil="x")  # error
    Sessions.open(url).project("p").context(cache_byts=3)  # error
    open_project(url, "p", cache_byts=3)  # error


def models() -> None:
    RLM("gpt-5", max_iteration=3)  # error
    RLM("gpt-5", max_iterations="3")  # error
    RLM("gpt-5").resume("run.jsonl", runnner="local")  # error
    compile_sessions("archive", "project", settle=3)  # error
    OpenAILM("gpt-5", base_ur="http://127.0.0.1")  # error
    AnthropicLM("claude", api_ky="x")  # error


def text(context: Monocontext) -> None:
    re.search("x", context.lower())  # error
    re.search("x", context[10:20])  # error
    re.search("x", context.strip())  # error
    context.split().append("x")  # error
    context.splitlines().sort()  # error
    head: str = context.partition(":")[0]  # error
    context.file().missing()  # error
    print(head)
