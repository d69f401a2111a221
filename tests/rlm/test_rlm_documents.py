"""A run over a lazy list or dict of documents: what the model is told, what its cells see, in each runner."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from rlm_replies import repl

from monocontext import Monocontext, publish
from monocontext.stores.memory import MemoryStore, forget
from rlm import RLM, ScriptedLM
from rlm.context.description import describe
from rlm.prompts.system import opening_messages, system_prompt

GIVEN = {
    f"dir/{i:04}.txt": f"document {i} é\n" + ("needle\n" if i % 700 == 3 else "plain words\n") * 3 for i in range(2000)
}
TEXTS = list(GIVEN.values())


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    publish(GIVEN, store)
    yield store
    forget(name)


def answer(context: Any, cell: str, runner: str) -> Any:
    lm = ScriptedLM([repl(cell), "FINAL(none)"])
    with RLM(lm=lm, sub_lm=ScriptedLM(lambda prompt: f"<{prompt[:10]}>"), runner=runner) as rlm:
        done = rlm.completion("Where is the needle?", context)
    assert done.answer != "none", done.trajectory[1]["code_blocks"][0]["result"]
    return done.answer


CELLS = {
    "list": (
        ("FINAL([i for i, d in enumerate(context) if 'needle' in d])", [3, 703, 1403]),
        ("import re\nFINAL([i for i, d in enumerate(context) if re.search('needle', d)])", [3, 703, 1403]),
        ("FINAL((len(context), isinstance(context, list), type(context) is list, type(context[0]) is str))", (2000, True, True, True)),
        ("FINAL([d for d in context if 'needle' in d])", [TEXTS[3], TEXTS[703], TEXTS[1403]]),
        ("FINAL(context[1:3])", TEXTS[1:3]),
        ("FINAL(llm_query(context[5]))", "<document 5>"),
        ("FINAL(llm_query_batched([d for d in context if 'needle' in d]))", ["<document 3>", "<document 7>", "<document 1>"]),
        ("import json\nFINAL(len(json.dumps(context)))", None),
        ("FINAL(max(context, key=len))", max(TEXTS, key=len)),
        ("FINAL(context.documents.at(5).name)", "dir/0000.txt"),
        ("FINAL(sum(d.count('plain') for d in context))", sum(d.count("plain") for d in TEXTS)),
        ("d = [d for d in context if 'needle' in d][0]\nFINAL(f'{d}!')", f"{TEXTS[3]}!"),
    ),
    "dict": (
        ("FINAL({k: len(d) for k, d in context.items() if 'needle' in d})", {f"dir/{i:04}.txt": len(TEXTS[i]) for i in (3, 703, 1403)}),
        ("FINAL(context['dir/0007.txt'])", TEXTS[7]),
        ("FINAL((isinstance(context, dict), type(context) is dict, 'nothing' in context))", (True, True, False)),
        ("FINAL(list(context)[:2])", ["dir/0000.txt", "dir/0001.txt"]),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["local", "subprocess"])
@pytest.mark.parametrize("shape", ["list", "dict"])
def test_cells_take_it_for_a_real_one(store: MemoryStore, shape: str, runner: str) -> None:
    import json

    with Monocontext.open(store, shape=shape) as context:  # type: ignore[call-overload]
        for cell, expected in CELLS[shape]:
            expected = len(json.dumps(TEXTS)) if expected is None else expected
            assert answer(context, cell, runner) == str(expected), cell


def test_the_model_is_told_what_it_is(store: MemoryStore) -> None:
    with Monocontext.open(store, shape="dict") as context:
        told = describe(context)
        assert told.kind == "lazy dict"
        assert told.length == 2000
        assert told.sentence.startswith("a dict of 2,000 documents by name, all str, ")
        assert "'dir/0000.txt', 'dir/0001.txt'" in told.sentence
        assert f"{sum(len(text.encode()) for text in TEXTS):,} bytes" in told.sentence
        assert context.stats.gets == 1
        prompt = system_prompt(told, prompt_characters=1000, output_limit=1000)
        assert "`context.text.grep(pattern)` finds lines that match" in prompt
        assert "in memory" not in prompt
    with Monocontext.open(store, shape="list") as context:
        assert "a list of 2,000 documents" in describe(context).sentence
        assert 'if "Lovelace" in item]' in opening_messages("q", describe(context), "")[2]["content"]
        prompt = system_prompt(describe(context), prompt_characters=1000, output_limit=1000)
        assert "Reading many items" in prompt


def test_a_dict_of_many_texts_tells_how_many_are_not_described(store: MemoryStore) -> None:
    with Monocontext.open(store) as text:
        assert describe({f"t{i}": text for i in range(23)}).sentence.endswith("; and 3 more texts")
        assert "more text" not in describe({f"t{i}": text for i in range(20)}).sentence


def test_a_served_text_tells_its_names(store: MemoryStore) -> None:
    from monocontext.engine.remote import ServedReader
    from monocontext.engine.remote.wire import BadRequest, encode_request
    from monocontext.text import served_text

    with Monocontext.open(store) as context:
        server = context.serve()
        assert dict(served_text(ServedReader(server.answer)).documents).keys() == GIVEN.keys()
        with pytest.raises(ValueError, match="is a part of a context"):
            served_text(ServedReader(context.view(0, 100).serve().answer)).documents  # noqa: B018
        for bad in ({"page": -1}, {"page": 10}, {"page": "0"}, {"page": None}, {"name": 5}):
            with pytest.raises(BadRequest):
                server.answer(encode_request("documents", **bad))
