"""Use a text, or a list or dict of documents, with `recursive-llm`, whose worker process opens it again from a pickle.

    from monocontext import Monocontext
    from monocontext.adapters import recursive_llm
    from rlm import RLM

    context = Monocontext.open("s3://bucket/prefix")
    model = RLM("gpt-5", **recursive_llm.ARGUMENTS)
    print(model.complete("Who wrote it?", context=recursive_llm.prepared(context)))

The host drops variables that cannot be pickled without a message, and the code meets a `NameError`; `prepared` raises
instead. Its `re` is the real one, which refuses a lazy text: `context.grep(pattern)`, `context.find(text)` and
`re.findall(pattern, context[a:b])` work. Attributes that begin with an underscore are refused by the host.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monocontext.adapters.description import Context

ARGUMENTS: dict[str, Any] = {"repl_timeout": 60.0}
"""Keyword arguments of `rlm.RLM`: its default of 5 seconds for a step is too short to search a large text."""


def prepared(context: Context) -> Context:
    """The context itself, if another process can open it (no GET). Raises `NotPicklable`."""
    pickle.dumps(context)
    return context
