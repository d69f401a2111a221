"""`recursive-llm`: pickles its context into a process of its own, which opens it again there.

    from monocontext import Monocontext
    from monocontext.adapters import recursive_llm
    from rlm import RLM

    context = Monocontext.open("s3://bucket/prefix")
    model = RLM("gpt-5", **recursive_llm.ARGUMENTS)
    print(model.complete("Who wrote it?", context=recursive_llm.prepared(context)))

What cannot be pickled it leaves out without a word, and the code meets a `NameError`; `prepared` raises instead. Its
`re` is the real one, which refuses a lazy text: `context.grep(pattern)`, `context.find(text)` and
`re.findall(pattern, context[a:b])` work. Attributes that begin with an underscore are refused by the host.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monocontext.text import Monocontext

ARGUMENTS: dict[str, Any] = {"repl_timeout": 60.0}
"""Keyword arguments of `rlm.RLM`: its 5 seconds for a step are short for one that searches a large text."""


def prepared(context: Monocontext) -> Monocontext:
    """The context itself, if another process can open it (no GET). Raises `NotPicklable`."""
    pickle.dumps(context)
    return context
