"""What an answer rests on, for each of the common ways to find it: the source's span holds the fact, and little else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from rlm import RLM, Completion, ScriptedLM
from rlm.trajectory.evidence import find_sources
from rlm.trajectory.source import NONE_RECORDED, format_sources
from rlm.trajectory.words import Words

FACT = "2026-03-04 ERROR billing: invoice INV-88213 failed, the retry code is QX-7741 (see ledger)"
CODE = "QX-7741"
_LINES = [f"2026-03-{i % 28 + 1:02d} INFO worker {i}: job {i * 37 % 9973} done in {i % 90} ms" for i in range(6_000)]
_LINES.insert(4_321, FACT)
TEXT = "\n".join(_LINES) + "\n"
AT = TEXT.index(FACT)
END = AT + len(FACT)
DONE = "```repl\nFINAL('QX-7741')\n```"

SIX: dict[str, str] = {
    "grep, printed": "print(context.grep('retry code'))",
    "grep, hits in a loop": "for hit in context.grep('retry code'):\n    print(hit.line_number, hit.line)",
    "grep, a list of lines": "print([hit.line for hit in context.grep('INV-88213')])",
    "search": "for found in context.search('retry code of the invoice', k=3):\n    print(found.text)",
    "search, printed": "print(context.search('invoice retry code', k=3))",
    "re.search": "import re\nprint(re.search(r'retry code is (\\S+)', context).group(1))",
    "re.findall": "import re\nprint(re.findall(r'retry code is \\S+', context))",
    "re.finditer": "import re\nfor m in re.finditer(r'invoice .*', context):\n    print(m.start(), m.group())",
    "find and a slice": "i = context.find('INV-88213')\nprint(context[max(0, i - 80):i + 120])",
    "index and a slice as a literal": "i = context.index('INV-88213')\n[context[i - 20:i + 60]]\nprint(repr(context[i-20:i+60]))",
    "partition": "print(context.partition('INV-88213')[2][:60])",
    "lines": "for line in context.lines:\n    if 'INV-88213' in line:\n        print(line)",
    "lines with their numbers": "for i, line in enumerate(context.splitlines()):\n    if 'billing' in line:\n        print(f'{i}: {line!r}')",
    "split": "print([line for line in context.split('\\n') if 'INV-88213' in line])",
    "lower and split": "hits = [line for line in context.split('\\n') if 'billing' in line.lower()]\nprint(len(hits), hits)",
    "a hit that was kept": "hits = [line for line in context.lines if 'INV-88213' in line]\nprint(len(hits))",
    "chunks, a slice of one": "for part in context.chunks(10_000):\n    at = part.find('INV-88213')\n    if at >= 0:\n        print(part[at - 30:at + 70])",
    "chunks, a line of one": "for n, part in enumerate(context.chunks(10_000)):\n    for line in part.split('\\n'):\n        if 'INV-88213' in line:\n            print('chunk', n, line.strip())",
    "slices in a loop": "for i in range(0, len(context), 9_000):\n    part = context[i:i + 9_100]\n    if 'INV-88213' in part:\n        at = part.index('INV-88213')\n        print(i, part[at:at + 64])\n        break",
    "re over slices": "import re\nfor i in range(0, len(context), 9_000):\n    found = re.findall(r'retry code is (\\S+)', context[i:i + 9_100])\n    if found:\n        print(found)",
    "a function": "def look(word):\n    i = context.find(word)\n    return context[i:i + 90]\nprint(look('INV-88213'))",
}  # fmt: skip


def ask(context: Any, *replies: str, **options: Any) -> Completion:
    return RLM(lm=ScriptedLM(list(replies)), **options).completion("which code?", context)


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monocontext]:
    path = tmp_path_factory.mktemp("evidence") / "context"
    publish(TEXT, path, frame_bytes=4_096)
    with Monocontext.open(path) as text:
        yield text


def holds_the_fact(completion: Completion) -> None:
    """The first source holds the code, stands where the fact does, and no source is a pass."""
    first = completion.sources[0]
    assert CODE in TEXT[first.start : first.stop]
    assert first.start < END
    assert first.stop > AT
    assert first.how == "read"
    assert all(source.stop - source.start < 1_000 for source in completion.sources)
    assert CODE in first.text


@pytest.mark.parametrize("code", SIX.values(), ids=SIX)
def test_each_way_to_find_it_is_a_source(context: Monocontext, code: str) -> None:
    holds_the_fact(ask(context, repl(code), DONE, runner="local"))


def test_each_way_of_a_confined_worker_too(context: Monocontext) -> None:
    with RLM(lm=ScriptedLM([reply for code in SIX.values() for reply in (repl(code), DONE)])) as rlm:
        with rlm.session(context) as session:
            for _ in SIX:
                holds_the_fact(session.ask("which code?"))
