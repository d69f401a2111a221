"""Read an answer that a reply gives in words: what stands between its parentheses, and whether it stands alone."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from rlm.runners.claims import Claim, read_claims
from rlm.runners.syntax import literal

_CHANGE = re.compile(
    r"(?<![=!<>])[=＝](?!=)|<-|\.\w+\(|\w\[|^[ \t]*(?:for|with|import|from|def|del|class)\b", re.MULTILINE
)
"""Code that may change a variable."""
_ANNOUNCING = re.compile(
    r"(?:\b(?:a|above|all|and|answers?|as|based|best|below|complete|computed|did|done|final|follows|for|found|from|have"
    r"|here|i|is|it|my|now|of|ok|okay|on|output|overall|question|results?|s|see|so|stored|the|therefore|this|thus|to"
    r"|value|variable|ve|we|what|you|your|but|(?:could|can|did) ?n[o'’]t (?:fully )?(?:check|confirm|verify)"
    r"|not (?:fully |entirely )?(?:certain|checked|sure|verified))\b|[\s*_`.:,;!#>'’-])*"
)
"""The words of sentences that announce an answer, as "Here is the final answer:" does, and state and change nothing."""


@dataclass(frozen=True, slots=True)
class TextFinal:
    """An answer in the words of a reply: `FINAL(...)` outside of its code."""

    text: str  # the answer, or the name of the variable that holds it
    is_name: bool  # whether `text` is the name of a variable: true for `FINAL_VAR`
    claims: tuple[Claim, ...] = ()  # its citations, as the model wrote them
    call: ast.Call | None = field(default=None, compare=False)  # it as Python; None for words
    span: tuple[int, int] = field(default=(0, 0), compare=False)  # the characters of the reply that it takes
    is_sure: bool = field(default=True, compare=False)  # whether no other parenthesis may close it
    ends_line: bool = field(default=True, compare=False)

    @property
    def variable(self) -> str:
        """The variable that it names, if it is a name and nothing else; else empty."""
        is_bare = self.is_name or (self.call and self.call.args and isinstance(self.call.args[0], ast.Name))
        return self.text if is_bare and self.text.isidentifier() and not self.text.startswith("__") else ""

    def stands_alone(self, reply: str, thinking: str) -> bool:
        """Whether the rest of `reply` only announces the answer, and nothing in `thinking` may change a variable."""
        rest = reply.replace(reply[slice(*self.span)], "").lower()
        return _ANNOUNCING.fullmatch(rest) is not None and not _CHANGE.search(thinking)


def read_written(inside: str, call: ast.Call | None) -> tuple[str, tuple[Claim, ...]]:
    """The text and the claims of an answer that is written between parentheses: the value of a str, or of fields by
    keyword; other text as it is. `call`: the same as Python, if it is."""
    if len(inside) > 1 and inside[0] == "“" and inside[-1] == "”" and not re.search("[“”]", inside[1:-1]):
        return inside[1:-1], ()
    match call:
        case ast.Call(args=[value], keywords=[ast.keyword(arg="sources", value=sources)]):
            written, claims = ast.get_source_segment(f"f({inside})", value) or "", read_claims(literal(sources))
        case ast.Call(args=[value], keywords=[]):
            written, claims = inside, ()
        case ast.Call(args=[], keywords=[_, *_] as keywords):
            fields = {str(key.arg): literal(key.value) for key in keywords if key.arg}
            if len(fields) == len(keywords) and not any(value is literal for value in fields.values()):
                inside = str(next(iter(fields.values())) if len(fields) == 1 else fields)
            return inside, ()
        case _:
            return inside, ()
    text = literal(value)
    return text if isinstance(text, str) else written, claims
