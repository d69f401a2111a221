"""Write what comes before the question: the system prompt, and example messages that search and answer.

The prompt (the context and its costs, the names in the REPL, how to work, how to finish) is short, because every turn
pays for it; `docs/rlm.md` gives its cost. No part of it is tuned to a benchmark.

A small model begins its reply with a fence, as the example messages do; it does not learn that from prose. It may copy
them verbatim, so their code must be correct as it is and print little. The visualizer of rlms takes any user message of
51 to 499 characters for the question of a run, unless it contains "answer the prompt"; so the first message does.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm.context.description import Description
from rlm.models.lm import Message

_ROLE = """\
You answer a question about a `context` that may be far too large to read. You work in a Python REPL: what you write \
in a fenced block tagged `repl` is run, its output comes back to you, and variables persist from turn to turn.
"""

_EXAMPLE_FOLLOWS = "The messages before the query are examples, over other contexts.\n"

_EXAMPLE_OF_PRINT = """\
```repl
print(context)
```
"""

_NAMES = """\
In the REPL:
- `llm_query(prompt, model=None) -> str` asks another model that sees only this prompt, of up to {limit:,} \
characters. Give it slices of a larger context, not `{{context}}`.
- `llm_query_batched(prompts, model=None, return_exceptions=False) -> list` asks many at once and keeps their order.
{children}- A failed call raises `LLMError`, which you may catch.
{tools}- `SHOW_VARS()` gives the variables made so far.
- Only what you `print`, and the value of a block's last expression, comes back; output above {output_limit:,} \
characters loses its middle. Exceptions come back as tracebacks; what was assigned before one is kept.
- The names above, `context`, `answer` and `FINAL` are reserved.
"""

_METHOD = """\
How to work:
- Look first: head, tail, structure. Then search with Python (`find`, `count`, `re`, loops over pieces) to narrow down.
- Use sub-calls for meaning, code for everything exact. Prefer few large prompts to many small ones: cut the text \
to be read into pieces of up to {limit:,} characters, ask them in one `llm_query_batched`, and combine the results.
- Keep results in variables and print only what you need to see. Check an answer against the text before you give it.
"""

_PATTERNS = {
    "text": """\
Reading a part for its meaning, all pieces at once:
```repl
pieces = [context[i:i + {piece}] for i in range(start, stop, {piece})]
found = llm_query_batched([f"List every decision in this text, with its date.\\n\\n{{piece}}" for piece in pieces])
print([text[:300] for text in found])
```
""",
    "list": """\
Reading many items for their meaning, several to a prompt, all prompts at once:
```repl
groups = [context[i:i + 20] for i in range(0, len(context), 20)]
found = llm_query_batched([f"Label each item, one line each.\\n\\n{{group}}" for group in groups])
```
""",
}

_FINISH = """\
To finish, when the answer stood in an output and not before, call `FINAL(value)` in a block. The first answer of a \
block counts.
{cite}`answer["content"] = value` keeps a draft, which counts when the budget ends before you do.
"""

_CITE = """\
Say what it rests on, characters of `context` or words in it: `FINAL(value, sources=[(start, stop), "quote"])`.
"""

_CHILDREN = """\
- `rlm_query(prompt, context=None) -> str` lets a child of your kind work on `context` with a REPL of its own, and \
`rlm_query_batched(prompts, contexts=None)` several: for a part that needs searching and several steps. It costs many \
calls; for reading alone `llm_query` is enough.
"""

_LAZY = """\
`context` is text, kept in storage and read where you look. It reads like a str, and its unit is the character: \
`context[a:b]` holds b - a characters.
- Cheap: `len(context)`, slices and indices anywhere, `.lines[a:b]` for lines. A look at a few thousand characters \
costs one small read, and nothing when it was read before.
- Streams through the text as far as it must: `in`, `find`, `count`, `index`. Fine once; do not repeat it in a loop, \
look at the neighbourhood of the hits instead.
- For a pass over everything: `for piece in context.chunks(100_000)`, which reads ahead.
- `split` and `splitlines` stream: loop over them, do not make lists of them.
- Stays lazy: `.lower()`, `.upper()`, `.replace()` and the like give views.
- `context.grep(pattern)` iterates over the hits, with `.offset`, `.line_number` and `.line`.
- `context.search('words', k=5)` gives passages that speak of them, best first: `.start`, `.text`.
- `re`, `json`, `io`, `csv` and `print` take it as it is; other libraries want a real str: `str(context)` while it is \
small enough, above that a slice, `context[a:b]`."""

_ACCESS = {
    "lazy text": _LAZY,
    "str": "`context` is a str, and its unit is the character. It is in memory, so slicing and searching are cheap. "
    "Printing it whole is not.",
    "list": "`context` is a list in memory. Look at a few items first, then loop over them or batch them.",
    "dict": "`context` is a dict in memory. Look at its keys and at one value first.",
    "lazy list": "`context` is a list, kept in storage and read where you look.",
    "lazy dict": "`context` is a dict, kept in storage and read where you look.",
    "nothing": "`context` is None. The REPL and the sub-model are there if you need them.",
    "object": "Find out what `context` offers before you rely on it.",
}

EXAMPLE_KINDS: dict[str, str] = {
    "lazy text": "text", "str": "text", "list": "list", "lazy list": "list", "dict": "dict", "lazy dict": "dict",
}  # fmt: skip
"""Kind of context, as in a `Description` -> the kind of the examples for it. Other contexts have none."""


def system_prompt(
    context: Description, *, prompt_characters: int, output_limit: int, children: bool = False,
    tools: Sequence[str] = (),
) -> str:  # fmt: skip
    """The system prompt for a context. It is the same for all contexts of a kind, so that providers can cache it; the
    question states the size. `prompt_characters`: the longest prompt of a sub-call. `output_limit`: the longest output
    of a block, in characters. `children`: whether cells may call `rlm_query`. `tools`: a line on each custom tool."""
    kind = EXAMPLE_KINDS.get(context.kind, "")
    access = "\n".join(filter(None, (_ACCESS[context.kind], context.access)))
    sections = (
        _ROLE + (_EXAMPLE_FOLLOWS if kind else f"\n{_EXAMPLE_OF_PRINT}"),
        f"{access}\n",
        _NAMES.format(limit=prompt_characters, output_limit=output_limit, children=_CHILDREN if children else "",
                      tools="".join(f"- {line}\n" for line in tools)),
        _METHOD.format(limit=prompt_characters),
        _PATTERNS[kind].format(piece=min(100_000, prompt_characters)) if kind in _PATTERNS else "",
        _FINISH.format(cite=_CITE if kind == "text" else ""),
    )  # fmt: skip
    return "\n".join(filter(None, sections))


# -- the example -------------------------------------------------------------------------------------------------------

QUESTION_OPENS = 'Answer the original query: "'  # the beginning of the question's message, which follows the example
LOOK_FIRST = (
    "`context` is there, and you have seen nothing of it yet. Write a ```repl block that searches it for a rare word "
    "of the query and prints what stands around it. Give no answer yet."
)
"""The request in the message of each turn until code has run."""
_EXAMPLE_QUESTION = (
    'For example, answer the prompt: "Where was Ada Lovelace buried?"\n\nThe variable `context` holds a {}.\n\n'
    f"Turn 1/2: {LOOK_FIRST}"
)
_EXAMPLE_SEARCHES = {
    "text": """\
at = context.find("Lovelace")
print(at, context[max(0, at - 150):at + 450] if at >= 0 else "not found")""",
    "list": """\
hits = [i for i, item in enumerate(context) if "Lovelace" in {item}]
print(hits[:20], str(context[hits[0]])[:600] if hits else "not found")""",
    "dict": """\
hits = [key for key, value in context.items() if "Lovelace" in {value}]
print(hits[:20], str(context[hits[0]])[:600] if hits else "not found")""",
}


def opening_messages(query: str, context: Description, system: str) -> list[Message]:
    """The system prompt, an example for a text, list or dict (a search, its output and its answer), and the question
    with a description of the context. Only the question differs between contexts of the same kind."""
    example: list[Message] = []
    if kind := EXAMPLE_KINDS.get(context.kind):
        # With `access` the items are texts, and `str` of one would read it.
        names = {name: name if context.access else f"str({name})" for name in ("item", "value")}
        example = [
            {"role": "user", "content": _EXAMPLE_QUESTION.format(kind)},
            {"role": "assistant", "content": f"```repl\n{_EXAMPLE_SEARCHES[kind].format(**names)}\n```"},
            {"role": "user", "content": "REPL output:\n81 Lovelace lies in Hucknall"},
            {"role": "assistant", "content": '```repl\nFINAL("Hucknall")\n```'},
        ]
    # The quoted form is what the rlms visualizer shows as the question of a run.
    question = f'{QUESTION_OPENS}{query}"\n\nThe variable `context` holds {context.sentence}.'
    return [{"role": "system", "content": system}, *example, {"role": "user", "content": question}]


def conversation(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages from the question on; without a question, all but the system prompt."""
    starts = (i for i, message in enumerate(messages) if message["content"].startswith(QUESTION_OPENS))
    return messages[next(starts, 1) :]
