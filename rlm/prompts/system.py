"""Write the system prompt: the context and its costs, the names in the REPL, how to work, how to finish.

The prompt has named sections and is short, because every turn pays for it; `docs/rlm.md` gives its cost. No part of it
is tuned to a benchmark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rlm.context.description import Description

_ROLE = """\
You answer a question about a `context` that may be far too large to read. You work in a Python REPL: what you write \
in a fenced block tagged `repl` is run, its output comes back to you, and variables persist from turn to turn.
"""

_EXAMPLE_FOLLOWS = "The messages before the query are examples, over other contexts.\n"

_ALONE = """\
```repl
print(context)
```
"""

_NAMES = """\
In the REPL:
- `llm_query(prompt, model=None) -> str` asks another model, which sees only this prompt: give it the text it needs. A \
prompt may hold about {limit:,} characters.
- `llm_query_batched(prompts, model=None, return_exceptions=False) -> list` asks many at once and keeps their order.
{children}- A failed call raises `LLMError`, which you may catch.
{tools}- `SHOW_VARS()` gives the variables made so far.
- Only what you `print`, and the value of a block's last expression, comes back; output above {output_limit:,} \
characters loses its middle. Exceptions come back as tracebacks; what was assigned before one is kept.
- The names above, `context`, `answer`, `FINAL`, `FINAL_VAR` and `SUBMIT` are reserved.
"""

_METHOD = """\
How to work:
- Look first: head, tail, structure. Then search with Python (`find`, `count`, `re`, loops over pieces) to narrow down.
- Use sub-calls for meaning, code for everything exact. Prefer few large prompts to many small ones: cut the text \
to be read into pieces of up to {limit:,} characters, ask them in one `llm_query_batched`, and combine the results in \
Python.
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
To finish, when the answer stood in an output and not before, do one of these:
- in a block: `FINAL(value)`, `FINAL_VAR("variable_name")` or `SUBMIT(value)`
- without any block, at the start of a line: FINAL(your answer) or FINAL_VAR(variable_name)
{cite}`answer["content"] = value` keeps a draft, which counts when the budget ends before you do; \
`answer["ready"] = True` gives it.
"""

_CITE = """\
Say what it rests on, characters of `context` or words in it: `FINAL(value, sources=[(start, stop), "quote"])`.
"""

_CHILDREN = """\
- `rlm_query(prompt, context=None) -> str` lets a child of your kind work on `context` with a REPL of its own, and \
`rlm_query_batched(prompts, contexts=None)` several: for a part that needs searching and several steps. It costs many \
calls; for reading alone `llm_query` is enough.
"""

# Each line is in the prompt if the context has the operation that it describes.
_LAZY = (
    (None, "`context` is text, kept in storage and read where you look. It reads like a str, and its unit is the"),
    (None, "character: `context[a:b]` holds b - a characters."),
    (None, "- Cheap: `len(context)`, slices and indices anywhere, `.lines[a:b]` for lines. A look at a few thousand"),
    (None, "characters costs one small read, and nothing when it was read before."),
    (
        "find",
        "- Streams through the text as far as it must: `in`, `find`, `count`, `index`. Fine once; do not repeat it",
    ),
    ("find", "in a loop, look at the neighbourhood of the hits instead."),
    ("chunks", "- For a pass over everything: `for piece in context.chunks(100_000)`, which reads ahead."),
    ("split", "- `split` and `splitlines` stream: loop over them, do not make lists of them."),
    ("lower", "- Stays lazy: `.lower()`, `.upper()`, `.replace()` and the like give views."),
    ("grep", "- `context.grep(pattern)` iterates over the hits, with `.offset`, `.line_number` and `.line`."),
    ("search", "- `context.search('words', k=5)` gives passages that speak of them, best first: `.start`, `.text`."),
    (
        "repl_namespace",
        "- `re`, `json`, `io`, `csv` and `print` take it as it is. `str(context)` and other libraries get a",
    ),
    ("repl_namespace", "real str while the text is small enough; above that give them a slice, `context[a:b]`."),
)
_NO_SHIMS = "- It is no str: what needs one (`re`, `json.loads`, `str.join`) wants a slice, or the pieces of a pass."

_ACCESS = {
    "str": "`context` is a str, and its unit is the character. It is in memory, so slicing and searching are cheap. "
    "Printing it whole is not.",
    "list": "`context` is a list in memory. Look at a few items first, then loop over them or batch them.",
    "dict": "`context` is a dict in memory. Look at its keys and at one value first.",
    "lazy list": "`context` is a list, kept in storage and read where you look.",
    "lazy dict": "`context` is a dict, kept in storage and read where you look.",
    "nothing": "`context` is None. The REPL and the sub-model are there if you need them.",
    "object": "Find out what `context` offers before you rely on it.",
}

SECTIONS = ("role", "context", "names", "method", "pattern", "finish")
"""The names of the sections, in the order of the prompt."""

KINDS: dict[str, str] = {
    "lazy text": "text", "str": "text", "list": "list", "lazy list": "list", "dict": "dict", "lazy dict": "dict",
}  # fmt: skip
"""The kinds of context for which there are examples, by their names in descriptions."""


def system_prompt(
    context: Description,
    *,
    prompt_characters: int,
    output_limit: int,
    children: bool = False,
    tools: Sequence[str] = (),
    without: Collection[str] = (),
) -> str:
    """The system prompt for a context.

    It is the same for all contexts of a kind, so that providers can cache it; the question states the size.
    `prompt_characters`: the longest prompt of a sub-call. `output_limit`: the longest output of a block, in characters.
    `tools`: a line on each custom tool. `without`: names of `SECTIONS` to leave out.
    """
    kind = KINDS.get(context.kind, "")
    if context.kind == "lazy text":
        access = _lazy_text_section(context.offers)
    else:
        access = "\n".join(filter(None, (_ACCESS[context.kind], context.access)))
    sections = {
        "role": _ROLE + (_EXAMPLE_FOLLOWS if kind else f"\n{_ALONE}"),
        "context": f"{access}\n",
        "names": _NAMES.format(
            limit=prompt_characters,
            output_limit=output_limit,
            children=_CHILDREN if children else "",
            tools="".join(f"- {line}\n" for line in tools),
        ),
        "method": _METHOD.format(limit=prompt_characters),
        "pattern": _PATTERNS[kind].format(piece=min(100_000, prompt_characters)) if kind in _PATTERNS else "",
        "finish": _FINISH.format(cite=_CITE if kind == "text" else ""),
    }
    return "\n".join(text for name, text in sections.items() if text and name not in without)


def _lazy_text_section(offers: frozenset[str]) -> str:
    lines = [line for needs, line in _LAZY if needs is None or needs in offers]
    if "repl_namespace" not in offers:
        lines.append(_NO_SHIMS)
    return "\n".join(lines)
