"""Every word that the root model is told, in the message shapes of rlms."""

from __future__ import annotations

from collections.abc import Sequence

from rlm.held import Held
from rlm.lm import Message
from rlm.step import Cell, Step

_SYSTEM = """\
You answer a question about a `context` that may be far too large to read. You work in a Python REPL: what you write \
in a fenced block tagged `repl` is run, its output comes back to you, and variables persist from turn to turn.

```repl
print(len(context)); print(context[:2000])
```

`context` is {sentence}.
{access}

In the REPL:
- `llm_query(prompt, model=None) -> str` asks another model, which sees only this prompt: give it the text it needs. A \
prompt may hold about {limit:,} characters.
- `llm_query_batched(prompts, model=None, return_exceptions=False) -> list` asks many at once and keeps their order.
{children}- A failed call raises `LLMError`, which you may catch.
{tools}- `SHOW_VARS()` gives the variables made so far.
- Only what you `print`, and the value of a block's last expression, comes back; output above {output_limit:,} \
characters loses its middle. Exceptions come back as tracebacks; what was assigned before one is kept.
- The names above, `context`, `answer`, `FINAL`, `FINAL_VAR` and `SUBMIT` are reserved.

How to work:
- Look first: head, tail, structure. Then search with Python (`find`, `count`, `re`, loops over pieces) to narrow down.
- Use sub-calls for meaning, code for everything exact. Prefer few large prompts to many small ones: cut the text \
to be read into pieces of up to {limit:,} characters, ask them in one `llm_query_batched`, and combine the results in \
Python.
- Keep results in variables and print only what you need to see. Check an answer against the text before you give it.

To finish, when you have the answer and not before, do one of these:
- in a block: `answer["content"] = ...` then `answer["ready"] = True`
- in a block: `FINAL(value)`, `FINAL_VAR("variable_name")` or `SUBMIT(value)`
- without any block, at the start of a line: FINAL(your answer) or FINAL_VAR(variable_name)
"""

# Each line stands in the prompt when the context has the operation that it is about.
_LAZY = (
    (
        None,
        "It reads like a str, and its unit is the character: `context[a:b]` holds b - a characters. It is no str, so",
    ),
    (None, "what needs one (`json.loads`, `str.join`) takes a slice."),
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
    ("grep", "- `context.grep(pattern)` gives the hits with their positions and lines."),
    ("repl_namespace", "- `re`, `json`, `io` and `print` take it as it is."),
    (None, "- `str(context)` of the whole is refused when it is large: slice."),
)
_NO_SHIMS = "- `re` wants a real str: give it slices, or the pieces of a pass."

_IN_MEMORY = {
    "str": "Its unit is the character; it is in memory, so slicing and searching are cheap. Printing it whole is not.",
    "list": "It is in memory. Look at a few items first, then loop over them or batch them.",
    "dict": "It is in memory. Look at its keys and at one value first.",
    "nothing": "The REPL and the sub-model are there if you need them.",
    "object": "Find out what it offers before you rely on it.",
}

_GUARD = (
    "You have not interacted with the REPL environment or seen your context yet. Look at the context first; do not "
    "provide a final answer yet.\n\n"
)

NO_CODE = (
    "Nothing was run: your reply has no block fenced as ```repl and no final answer at the start of a line. Write one."
)
CUT_AND_RUN = "[your reply was cut off before the closing fence; the block was complete and ran as it stood]\n"
CUT_NOT_RUN = "Not run: your reply was cut off inside this block. Send it again, shorter or in parts.\n"

DRAFT = 'if answer.get("content") not in (None, ""): FINAL(answer["content"])'
"""A cell that gives what the model has drafted so far as the answer."""
NEW_QUESTION = 'answer["content"], answer["ready"] = "", False'
"""A cell that makes room for another answer."""

_CHILDREN = """\
- `rlm_query(prompt, context=None) -> str` lets a child of your kind work on `context` with a REPL of its own, and \
`rlm_query_batched(prompts, contexts=None)` several: for a part that needs searching and several steps. It costs many \
calls; for reading alone `llm_query` is enough.
"""

_FORCED = (
    "All {turns} turns are used; no more code will run. Give your best answer now, as plain text, from what you have "
    "found so far, and say what is uncertain about it."
)


def opening_messages(
    query: str,
    held: Held,
    *,
    prompt_characters: int,
    output_limit: int,
    children: bool = False,
    tools: Sequence[str] = (),
) -> list[Message]:
    """The system prompt, and the question with what there is to know of the context."""
    access = _lazy(held.offers) if held.kind == "lazy text" else _IN_MEMORY[held.kind]
    system = _SYSTEM.format(
        sentence=held.sentence,
        access=access,
        limit=prompt_characters,
        output_limit=output_limit,
        children=_CHILDREN if children else "",
        tools="".join(f"- {line}\n" for line in tools),
    )
    # The quoted form is what the rlms visualizer shows as the question of a run.
    asked = f'Answer the original query: "{query}"\n\nYour context is {held.sentence}.'
    return [_message("system", system), _message("user", asked)]


def next_question(query: str) -> Message:
    """What begins another question in the same namespace."""
    return _message(
        "user", f'Now answer another query: "{query}"\n\n`context` and your variables are as you left them.'
    )


def turn_message(turn: int, turns: int | None) -> Message:
    """What opens turn `turn` of `turns`, counted from 1; the first one asks to look before answering."""
    return _message("user", (_GUARD if turn == 1 else "") + f"Turn {turn}{'' if turns is None else f'/{turns}'}:")


def forced_message(turns: int) -> Message:
    """The demand for an answer after the last turn."""
    return _message("user", _FORCED.format(turns=turns))


def feedback(step: Step) -> list[Message]:
    """What a turn adds to the history: the reply itself, and one message with all that came of it."""
    numbered = len(step.cells) > 1
    parts = [
        f"REPL output{f' (block {i})' if numbered else ''}:\n{_shown(cell)}" for i, cell in enumerate(step.cells, 1)
    ]
    if step.notice:
        parts.append(step.notice)
    return [_message("assistant", step.reply.text), *([_message("user", "\n\n".join(parts))] if parts else [])]


def _lazy(offers: frozenset[str]) -> str:
    lines = [line for needs, line in _LAZY if needs is None or needs in offers]
    if "repl_namespace" not in offers:
        lines.append(_NO_SHIMS)
    return "\n".join(lines)


def _shown(cell: Cell) -> str:
    result = cell.result
    parts = [part.rstrip("\n") for part in (result.stdout, result.stderr) if part]
    if not parts:
        parts.append("No output: use print(...) to see a value.")
    names = [name for name in result.variables if name != "context"]
    if names:
        parts.append(f"REPL variables: {_listed(names)}")
    return "\n".join(parts)


def _listed(names: Sequence[str], most: int = 40) -> str:
    newest = list(names)[-most:]
    return (f"... and {len(names) - most} more, " if len(names) > most else "") + ", ".join(newest)


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
