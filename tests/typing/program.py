"""Public names as they are meant, and as they are not: a line marked `error` is one for mypy and pyright. Never run."""

from __future__ import annotations

import csv
import re as plain_re
from pathlib import Path
from typing import assert_type

from monocontext import ContextTooLarge, Manifest, Monocontext, MonocontextError, append, publish
from monocontext import regex as re
from monocontext.aio import AsyncMonocontext
from monocontext.memory import Memory
from monocontext.options import StoreOptions
from monocontext.sessions import Sessions, open_project
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.text.context_file import ContextFile
from monocontext.text.lines import LineView
from monocontext.writing.index_in_place import index
from rlm import RLM, RLM_REPL, AnthropicLM, Budget, Completion, OpenAILM, ScriptedLM, Session
from rlm.compile import compile_sessions


def storing(url: str, store: Store) -> None:
    options: StoreOptions = {"endpoint": "http://127.0.0.1", "anonymous": True}
    assert_type(publish("text", url, replace=True, encoding="latin-1", store_options=options), Manifest)
    append([Path("folder"), b"bytes"], store, include=("*.py",), errors="replace", executor=None)
    index(["s3://bucket/a", Path("b")], url, filters=False, store_options={"region": "eu-west-1"})
    assert_type(open_store(url, **options), Store)


def opening(url: str, store: Store) -> None:
    context = Monocontext.open(url, cache_bytes=1 << 20, prefetch="off", endpoint="http://127.0.0.1")
    assert_type(context, Monocontext)
    assert_type(Monocontext.open(store, unit="characters"), Monocontext)
    assert_type(Monocontext.open(Path(url), unit="lines", allow=["s3://other"]), LineView)
    assert_type(context.file(), ContextFile)
    Monocontext("bucket", "prefix/", region="eu-west-1", endpoint="http://127.0.0.1")
    with context, context.file() as file:
        csv.DictReader(file)


def reading(context: Monocontext) -> None:
    assert_type(context[3], str)
    assert_type(context[3:5], str | Monocontext)
    assert_type(str(context[3:5]), str)
    assert_type(context.lower(), str | Monocontext)
    assert_type(context.lower().strip().replace("a", "b"), str | Monocontext)
    assert_type(context.find("x") + len(context), int)
    assert_type("x" in context.lower(), bool)
    for word in context.lower().split():
        assert_type(word, str)
    for line in context.splitlines()[:10]:
        assert_type(line, str)
    head, _, tail = context.partition(":")
    print(head.upper(), tail[:10], context + "end", "start" + context, context == "text", f"{head}")
    re.search("x", context.lower())
    for hit in context.grep("x", max_hits=3):
        print(hit.offset, hit.line)
    print(context.lines[3], context.lines[1:4], len(context.lines), context.stats.gets, context.url)
    with context.thinking():
        context.hint("context[")
        context.prefetch([(0, 10)])


async def waiting(url: str) -> None:
    async with AsyncMonocontext.open(url, cache_bytes=1 << 20, region="eu-west-1") as context:
        assert_type(await context[1:2], str)
        assert_type(await context.find("x"), int)


def remembering(url: str) -> None:
    with Memory.open(url, endpoint="http://127.0.0.1") as memory:
        assert_type(memory.context(cache_bytes=1 << 20), Monocontext)
    Sessions.open(url, profile="p").project("p").context(since="2026-01-01", cache_bytes=3)
    open_project(url, "p", cache_bytes=1 << 20, region="eu-west-1", sessions=["a"])


def asking(context: Monocontext) -> None:
    with RLM("gpt-5", "gpt-5-mini", max_iterations=5, max_dollars=1, runner="local", trajectory="runs") as rlm:
        assert_type(rlm.completion("Who?", context), Completion)
        assert_type(rlm.session(context), Session)
        assert_type(rlm.resume("run.jsonl"), Completion)
        assert_type(rlm.budget, Budget)
    assert_type(RLM.resume_run("run.jsonl", context, max_calls=3, on_step=print), Completion)
    RLM(lm=OpenAILM("m", base_url="http://127.0.0.1"), sub_lm=AnthropicLM("m"), budget=Budget(calls=3))
    assert_type(RLM_REPL(recursive_model="m", lm=ScriptedLM([]), max_depth=2).completion("text"), str)


def failing(url: str) -> None:
    try:
        str(Monocontext.open(url))
    except ContextTooLarge as error:
        assert_type(error, ContextTooLarge)
    except MonocontextError as error:
        print(error)


def wrong_options(url: str) -> None:
    Monocontext.open(url, cache_byts=3)  # error
    Monocontext.open(url, cache_bytes="3")  # error
    Monocontext.open(url, prefetch="never")  # error
    Monocontext.open(url, unit="lines", end_point="http://127.0.0.1")  # error
    Monocontext.open(5)  # error
    Monocontext("bucket", "prefix/", cache_byts=3)  # error
    AsyncMonocontext.open(url, cache_byts=3)  # error
    publish("text", url, filter=True)  # error
    publish("text", url, store_options={"end_point": "http://127.0.0.1"})  # error
    append("text", url, header=5)  # error
    index("text", url, replaces=True)  # error
    open_store(url, end_point="http://127.0.0.1")  # error
    Memory.open(url).context(cache_byts=3)  # error
    Sessions.open(url).project("p").context(cache_byts=3)  # error
    open_project(url, "p", cache_byts=3)  # error


def wrong_models() -> None:
    RLM("gpt-5", max_iteration=3)  # error
    RLM("gpt-5").resume("run.jsonl", runnner="local")  # error
    compile_sessions("archive", "project", settle=3)  # error
    OpenAILM("gpt-5", base_ur="http://127.0.0.1")  # error
    AnthropicLM("claude", api_ky="x")  # error


def wrong_text(context: Monocontext) -> str:
    plain_re.search("x", context.lower())  # error
    plain_re.search("x", context[10:20])  # error
    context.split().append("x")  # error
    context.file().missing()  # error
    return context.partition(":")[0]  # error
