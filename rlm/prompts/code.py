"""Find the blocks of code in a reply, fenced or not.

- A fence has three or more backticks or tildes; it may be indented, or follow a list marker. `<code>` is one too.
- Blocks with a tag that names Python run: `repl`, `python`, `py`, `python3`, `ipython`, `{python}` and similar ones, in
  any case.
- A block ends at the fence where its code is complete, so a fence inside a triple-quoted string does not end it; the
  closing fence may be at the end of the last line of code.
- Code without a tag runs only if it acts: it compiles, and calls or assigns something.

`monocontext/engine/hints/reply.py` reads the same fences as they stream; `tests/rlm/prompts/test_fences.py` holds both
against one table.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rlm.runners.syntax import compiles, parse

OPENING = re.compile(
    r"(?P<margin>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)"  # spaces, or the marker of a list
    r"(?P<mark>`{3,}(?!.*`)|~{3,})[ \t]*(?P<info>.*)$"
)
"""The line that opens a fence."""
PYTHON_TAGS = r"(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?"
"""The tags of Python, as a pattern."""
_TAG = re.compile(r"[{\s]*\.?(?P<tag>[^\s:{},;]*)")
_PYTHON_TAG = re.compile(PYTHON_TAGS, re.IGNORECASE)
_BARE_TAG = re.compile(rf"[`'\"*<\[ \t]{{0,3}}{PYTHON_TAGS}[`'\"*>\]: \t]{{0,3}}", re.IGNORECASE)
"""A line that is only a tag, without the marks of a fence."""
_MAY_OPEN = re.compile(rf"[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]*)?(?:`{{3}}|~{{3}}|<)|{_BARE_TAG.pattern}$", re.IGNORECASE)
"""The beginning of a line that may open a block: a mark of a fence, a `<`, or a line that is only a tag."""
_HTML = re.compile(r"[ \t]*<(?P<name>code|python|repl)\b(?P<attributes>[^<>]*)>(?P<rest>.*)$", re.IGNORECASE)
"""The line that opens `<code>`, `<python>` or `<repl>`."""
_ANSWER_CALLS = frozenset(("FINAL", "FINAL_VAR", "SUBMIT"))
_KNOWN_FUNCTIONS = frozenset(dir(builtins)) | {
    "llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "SHOW_VARS",
}  # fmt: skip
"""Builtins, and functions that every cell has."""

# Closing fences tried for one block. A string in real code holds a handful; without a bound, a reply of broken blocks
# would take quadratic time.
_FENCES_TRIED = 50


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The code of one block of a reply."""

    code: str
    """Source, dedented, without its fences."""
    cut: bool = False
    """The reply ended before the closing fence of this block of Python."""

    @property
    def may_run(self) -> bool:
        """Whether the block may run: a cut block that is not complete source must not."""
        return not self.cut or compiles(self.code)


@dataclass(frozen=True, slots=True)
class FencedBlock:
    """A fenced block, or code that lacks its fence."""

    block: CodeBlock
    line_count: int
    """The lines of the reply that the block takes, fences included."""
    tag: str
    """The tag in lower case, empty for none; `code` for `<code>`, `bare` for code after a line that is a tag without a
    fence."""
    is_closed: bool
    """Whether a closing fence ends it."""

    @property
    def is_python(self) -> bool:
        """Whether the tag names Python."""
        return _PYTHON_TAG.fullmatch(self.tag) is not None or self.tag in ("code", "bare")


def may_open(line: str) -> bool:
    """Whether a block may begin with a line: a cheap test before `read_fence`."""
    return _MAY_OPEN.match(line) is not None


def read_fence(reply: Sequence[str], at: int) -> FencedBlock | None:
    """The block that begins with line `at` of a reply; None if none does."""
    lines = reply[at:]
    opening = OPENING.match(lines[0])
    if opening is None:
        return _read_html(lines) or _read_bare(lines)
    margin, mark = len(opening["margin"]), opening["mark"]
    found = _TAG.match(opening["info"])
    tag = found["tag"].lower() if found else ""
    body = lines[1:]
    if _PYTHON_TAG.fullmatch(tag):
        block, taken = _read_block(body, margin, mark)
        return FencedBlock(block, 1 + taken, tag, is_closed=not block.cut)
    end = next((i for i, line in enumerate(body) if line.rstrip().endswith(mark)), None)
    if end is None:
        return FencedBlock(CodeBlock(_dedent(body, margin)), len(lines), tag, is_closed=False)
    return FencedBlock(CodeBlock(_dedent(_lines_before(body, end, mark[0]), margin)), end + 2, tag, is_closed=True)


def whole_code(text: str) -> CodeBlock | None:
    """The code of a text that is only code, except for a closing fence without an opening one."""
    code = re.sub(r"\n[ \t]*(?:`+|~{3,})[ \t]*\Z", "", text.strip("\n").rstrip())
    first, _, rest = code.partition("\n")
    code = _dedent((rest if _BARE_TAG.fullmatch(first) else code).strip("\n").split("\n"), 0)
    return CodeBlock(code) if acts(code) else None


def acts(code: str) -> bool:
    """Whether code compiles and does something: calls a method, a known function or one written as code is, assigns,
    loops, or reads a part of `context`.

    Calls that give an answer do not count: a reply of `FINAL(...)` alone is text.
    """
    try:
        body = [statement for statement in parse(code).body if not _is_final(statement)]
    except SyntaxError:
        return False
    nodes = [node for statement in body for node in ast.walk(statement)]
    known = _KNOWN_FUNCTIONS | {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    known |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    for node in nodes:
        match node:
            case ast.Assign() | ast.AugAssign() | ast.NamedExpr() | ast.For() | ast.With():
                return True
            case ast.AnnAssign(value=ast.expr()) | ast.Call(func=ast.Attribute()):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in known or _looks_like_call(code, node):
                return True
            case ast.Subscript(value=ast.Name(id="context")):
                return True
    return False


def gives_answer(code: str) -> bool:
    """Whether code of a cell may end the run: it uses one of the ways to answer."""
    try:
        names = {node.id for node in ast.walk(parse(code)) if isinstance(node, ast.Name)}
    except (SyntaxError, RecursionError):
        return False
    return not names.isdisjoint(_ANSWER_CALLS | {"answer"})


def _looks_like_call(code: str, call: ast.Call) -> bool:
    """Whether a call of an unknown name is written as code is: `look_up(x)`, but not `Paris (France)`."""
    source = ast.get_source_segment(code, call) or ""
    return re.match(r"[a-z]\w*_\w+\(", source) is not None


def _is_final(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name in _ANSWER_CALLS
    return False


def _read_bare(lines: Sequence[str]) -> FencedBlock | None:
    """Code after a line `repl` that lacks the marks of a fence, up to the fence that closes it."""
    if _BARE_TAG.fullmatch(lines[0]) is None:
        return None
    at = next((i for i, line in enumerate(lines) if i > 0 and line.strip()), len(lines))
    if at < len(lines) and (inner := OPENING.match(lines[at])) and not inner["info"]:
        block, taken = _read_block(lines[at + 1 :], len(inner["margin"]), inner["mark"])
        return FencedBlock(block, at + 1 + taken, "bare", is_closed=not block.cut) if acts(block.code) else None
    body = lines[1:]
    end = next((i for i, line in enumerate(body) if re.search(r"(?:`{3,}|~{3,})[ \t]*$", line)), None)
    code = _dedent(body if end is None else _lines_before(body, end, "`~"), 0).strip("\n")
    if not acts(code):
        return None
    return FencedBlock(CodeBlock(code), len(lines) if end is None else end + 2, "bare", is_closed=end is not None)


def _read_html(lines: Sequence[str]) -> FencedBlock | None:
    """`<code>...</code>`, on lines of its own, if it is Python by its attributes and by its content."""
    opening = _HTML.match(lines[0])
    if opening is None:
        return None
    if opening["attributes"].strip() and not re.search(PYTHON_TAGS, opening["attributes"], re.IGNORECASE):
        return None
    text = "\n".join([opening["rest"], *lines[1:]])
    closing = re.search(rf"</{opening['name']}\s*>[ \t]*$", text, re.IGNORECASE | re.MULTILINE)
    if closing is None:
        return None
    code = _dedent(text[: closing.start()].strip("\n").rstrip().split("\n"), 0)
    if not acts(code) and not gives_answer(code):
        return None
    return FencedBlock(CodeBlock(code), text.count("\n", 0, closing.end()) + 1, "code", is_closed=True)


def _read_block(body: Sequence[str], margin: int, mark: str) -> tuple[CodeBlock, int]:
    """The block of Python that starts at `body[0]`, and the number of its lines with the closing fence.

    A bare fence is not valid Python, so code that compiles up to a fence cannot continue after it: the first such fence
    ends the block. The exception is a fence in a comment, after which the block may go on to a later one.
    """
    complete_in_comment: tuple[CodeBlock, int] | None = None
    broken: tuple[CodeBlock, int] | None = None
    for code, is_alone, end in _find_ends(body, margin, mark):
        found = CodeBlock(code), end + 1
        if not compiles(code):
            if is_alone and complete_in_comment:
                return complete_in_comment
            broken = broken or found
        elif is_alone or "#" not in code.rpartition("\n")[2]:
            return found
        else:
            complete_in_comment = complete_in_comment or found
    rest = re.sub(rf"\n[ \t]*{mark[0]}{{1,2}}$", "", _dedent(body, margin))
    if compiles(rest):
        return CodeBlock(rest, cut=True), len(body)
    return complete_in_comment or broken or (CodeBlock(rest, cut=True), len(body))


def _find_ends(body: Sequence[str], margin: int, mark: str) -> Iterator[tuple[str, bool, int]]:
    """The lines that may close a block: for each, the code before its fence, whether it has no code itself, and its
    number."""
    closing_lines = (i for i, line in enumerate(body) if line.rstrip().endswith(mark))
    for end in islice(closing_lines, _FENCES_TRIED):
        lines = _lines_before(body, end, mark[0])
        yield _dedent(lines, margin), len(lines) == end, end


def _lines_before(body: Sequence[str], end: int, marks: str) -> list[str]:
    """The code before the closing fence on line `end`, and before the fence on that line."""
    last = body[end].rstrip().rstrip(marks)
    return [*body[:end], last] if last.strip() else list(body[:end])


def _dedent(lines: Sequence[str], margin: int) -> str:
    """The code without the margin of its fence; without the margin that all lines share, if only that compiles."""
    from textwrap import dedent  # an import of rlm need not pay for it

    code = "\n".join(line[min(margin, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
    even = dedent(code)
    return even if even != code and not compiles(code) and compiles(even) else code
