"""`minrlm`: takes the object as it is, under the name `input_0`.

    from minrlm import RLM
    from monocontext import Monocontext
    from monocontext.adapters import minrlm

    context = Monocontext.open("s3://bucket/prefix")
    print(RLM(model="gpt-5-mini").completion("Who wrote it?", minrlm.prepared(context)).response)

After each cell it takes `str()` of every variable, to show the beginning, and swallows what that raises. A text that
fits under `materialize_limit` would be fetched whole each time, so the limit is lowered. With `use_docker=True` the
context is written into a container: no object gets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.text import Monocontext

MATERIALIZE_LIMIT = 1 << 20
"""Characters: below it `str(context)` is a few requests, and a slice is a real `str` for all that a model prints."""


def prepared(context: Monocontext, materialize_limit: int = MATERIALIZE_LIMIT) -> Monocontext:
    """The same text with a lower limit for what becomes one `str` (no GET)."""
    return context.view(materialize_limit=materialize_limit)
