"""`cite`: check whether a context still holds a source of an answer."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated

from monocontext.cli.options import S3, Allow, AsJson, options_of
from monocontext.cli.parameters import Argument
from monocontext.cli.printing import write_text
from monocontext.errors import MonocontextError

_REFERENCE = re.compile(r"(\d{1,18})-(\d{1,18})(?:@(\d{1,18}))?(?:#([0-9a-f]{8,64}))?")
_MOST_CHARACTERS = 1_000_000


def cite(
    url: Annotated[str, Argument(metavar="URL")],
    source: Annotated[str, Argument(metavar="SOURCE", help="As an answer names it: START-STOP@GENERATION#CHECKSUM.")],
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print what a source of an answer names, and whether it still stands in the newest version of URL."""
    from monocontext.text.monocontext import Monocontext

    found = _REFERENCE.fullmatch(source)
    start, stop = (int(found[1]), int(found[2])) if found else (0, 0)
    if not found or not 0 < stop - start <= _MOST_CHARACTERS:
        raise MonocontextError(
            f"not a source: {source!r}; one is START-STOP, then perhaps @GENERATION and #CHECKSUM, of at most "
            f"{_MOST_CHARACTERS:,} characters"
        )
    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
        text = str(context[start:stop])
        line = len(context.view(0, start + 1).lines)
        generation = context.generation
    checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    stands = len(text) == stop - start and (not found[4] or checksum.startswith(found[4]))
    if as_json:
        print(json.dumps({
            "stands": stands, "start": start, "stop": stop, "line": line, "sha256": checksum, "text": text,
            "cited_generation": found[3] and int(found[3]), "generation": generation,
        }))  # fmt: skip
    else:
        write_text(text if text.endswith("\n") else text + "\n")
    if not stands:
        raise MonocontextError(f"{url}: line {line}, characters {start} to {stop} are not what was cited")
