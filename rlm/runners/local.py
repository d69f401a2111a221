"""Run cells in this process, with the rights of its user. No sandbox: a cell can end or damage the process."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from rlm.calls.waiting import CellClock
from rlm.context.excerpt import bounded_repr, shorten
from rlm.context.lazy import is_text, lazy_texts
from rlm.errors import AnswerRefused, LLMError
from rlm.runners import cell_thread
from rlm.runners.answers import Answers, FinalAnswer
from rlm.runners.claims import Claim
from rlm.runners.runner import AFTER_CLOSE, CellResult
from rlm.runners.syntax import hide_syntax_warnings, parse

if TYPE_CHECKING:
    from rlm.calls.subcalls import SubCalls
    from rlm.runners.remote_calls import RemoteCalls

_runs = itertools.count(1)
_MISSING = object()  # in place of the value of a name that a cell has deleted


class LocalRunner:
    """Runs cells in one namespace of this process. It holds `context` itself, never a copy.

    A cell may run `cell_timeout` seconds, not counting the time in which it waits for sub-calls. Then an exception is
    raised in its thread. A C call (a socket, `time.sleep`) must return first: after one second, `run` returns without
    it. A C call that keeps the interpreter lock (a pattern that backtracks, `10**10**9`) stops the whole process.
    """

    def __init__(
        self, context: object, subcalls: SubCalls | RemoteCalls, *, cell_timeout: float | None = 120.0,
        output_limit: int = 20_000, names: Mapping[str, object] | None = None,
        thread: cell_thread.CellRunner | None = None, after_cell: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """- `subcalls`: the functions with which cells ask models
        - `cell_timeout`: seconds, None for no limit
        - `output_limit`: characters of the output of a cell; a longer one loses its middle
        - `names`: more names of the namespace, which cells cannot rebind
        - `thread`: runs the cells, by default a thread of their own
        - `after_cell`: called when the code of a cell has ended
        """
        self._subcalls = subcalls
        self._cell_timeout = math.inf if cell_timeout is None else cell_timeout
        self._output_limit = output_limit
        self._file_prefix = f"<cell {next(_runs)}."
        self._sources: list[str] = []  # the file names of the cells so far
        self._is_closed = False
        self._out = cell_thread.Buffer(output_limit)  # of the running cell
        self._thread = thread or cell_thread.CellThread()
        self._after_cell = after_cell
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        texts = list(lazy_texts([context, *(names or {}).values()]))
        self._answers = Answers(context, self._namespace, texts)
        lazy_names: dict[str, Any] = {}  # the functions with which code reads lazy texts as if they were str
        for text in texts:
            lazy_names |= text.repl_namespace().names
        # A name of a builtin replaces it in this namespace; any other name becomes a variable.
        lazy_builtins = {name: lazy_names.pop(name) for name in list(lazy_names) if hasattr(builtins, name)}
        self._builtins = vars(builtins) | lazy_builtins
        self._print_to_stream = self._builtins["print"]
        self._builtins |= {name: partial(_refuse, name) for name in ("input", "breakpoint")}
        # The exit and quit of the interactive interpreter close the process's stdin.
        self._builtins |= {"print": self._print, "exit": sys.exit, "quit": sys.exit}
        self._original_builtins = dict(self._builtins)  # `_restore` takes back what a cell changes in `_builtins`
        self._reserved: dict[str, Any] = {  # names that cells cannot rebind: `_restore` takes that back too
            "__builtins__": self._builtins, "context": context, "answer": self._answers.slot, "LLMError": LLMError,
            "SHOW_VARS": self.show_vars, **subcalls.functions, **(names or {}), **self._answers.functions,
        }  # fmt: skip
        self._namespace |= lazy_names | self._reserved
        self._initial_names = frozenset(self._namespace)  # the names before the first cell, which are not its variables

    def run(self, code: str) -> CellResult:
        """Run one cell. Assignments before an exception are kept; reserved names are restored."""
        if self._is_closed:
            return AFTER_CLOSE
        waited = self._subcalls.waited
        clock = CellClock(self._cell_timeout, self._subcalls.seconds_left, waited, waited.seconds)
        limit = self._output_limit
        out = cell_thread.Buffer(limit)
        err = cell_thread.Buffer(limit // 4)  # a traceback is short, and its end counts
        cell = _RunningCell(f"{self._file_prefix}{len(self._sources) + 1}>", code, out, err)
        self._sources.append(cell.file)
        self._out = cell.out
        try:
            with cell_thread.route_streams():
                has_ended = self._thread.run(lambda: self._run_and_collect(cell, clock), clock.seconds_left)
        except BaseException:  # a Ctrl-C
            self._restore()
            self._subcalls.drain()
            raise
        if not has_ended:
            cell.raised = True
            cell.err.write(
                f"CellTimeout: the cell ran longer than {clock.allowed_seconds():g} s and could not be stopped, since "
                "it is inside a C call. It goes on in the background until that returns, and may change variables.\n"
            )
            self._collect_answer(cell)
        notes = self._restore()
        notes = shorten(notes, cell_thread.NOTES_CHARACTERS) if notes else ""
        stderr = cell.err.text()
        return CellResult(
            stdout=cell.out.text(self._output_limit - len(stderr)) + notes, stderr=stderr, variables=cell.variables,
            calls=self._subcalls.drain(), final_answer=cell.final_answer,
            execution_seconds=time.perf_counter() - clock.started, raised=cell.raised and cell.final_answer is None,
            claims=cell.claims,
        )  # fmt: skip

    def close(self) -> None:
        """End the thread of the cells, and drop their sources from `linecache`."""
        self._is_closed = True
        self._thread.close()
        for file in self._sources:
            linecache.cache.pop(file, None)

    def show_vars(self) -> dict[str, str]:
        """The variables that cells have made: name -> type and shortened value."""
        return {name: f"{type(value).__name__}: {_safe_repr(value)}" for name, value in self._variables().items()}

    def works(self) -> bool:
        """Whether a small test cell still prints what it should. Runs it on the calling thread in a fresh namespace."""
        code = "probe = [len(str(12))]\nprint(probe)\nprobe"
        out = cell_thread.Buffer(self._output_limit)
        cell = _RunningCell(f"{self._file_prefix}0>", code, out, err=out)
        names = {name: self._namespace[name] for name in self._initial_names if name in self._namespace}
        before, self._out = self._out, out
        try:
            self._run_code(cell, names)
        except BaseException:
            return False
        finally:
            self._out = before
            linecache.cache.pop(cell.file, None)
        return out.text() == "[2]\n[2]\n"

    def _variables(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in list(self._namespace.items())
            if isinstance(name, str)  # globals() takes other keys too
            and name not in self._initial_names
            and not name.startswith("_")
            and not isinstance(value, ModuleType)
        }

    def _run_and_collect(self, cell: _RunningCell, clock: CellClock) -> None:
        """Run the code, then collect its variables and answer. Runs on the cell's thread."""
        with cell_thread.capture_thread(cell.out, cell.err):
            try:
                try:
                    self._run_code(cell, self._namespace)
                    cell.raised = False
                finally:
                    self._thread.stop_interrupts()
            except FinalAnswer:
                cell.raised = False
            except cell_thread.CellTimeout as exc:
                cell.err.write("".join(cell_traceback(exc, self._file_prefix).splitlines(keepends=True)[:-1]))
                seconds = clock.allowed_seconds()
                cell.err.write(f"CellTimeout: stopped after {seconds:g} s; variables set before that are kept.\n")
            except SystemExit as exc:
                cell.err.write(f"SystemExit({exc.code!r}): a cell cannot end the session; answer with FINAL(value).\n")
            except BaseException as exc:
                cell.err.write(cell_traceback(exc, self._file_prefix))
            try:
                self._collect_answer(cell)
                display = {"context": self._reserved["context"], **self._variables()}
                cell.variables = {name: _safe_repr(value) for name, value in display.items()}
            except BaseException as exc:  # a timeout, or the cell has damaged the interpreter
                cell.err.write(cell_traceback(exc, self._file_prefix))

    def _collect_answer(self, cell: _RunningCell) -> None:
        if self._after_cell:
            self._after_cell()
        try:
            cell.final_answer, cell.claims = self._answers.collect()
        except AnswerRefused as exc:
            cell.raised = True
            cell.err.write(f"Answer refused: {exc}\n")

    def _run_code(self, cell: _RunningCell, names: dict[str, Any]) -> None:
        """Run the code in a namespace, and print the value of its last expression."""
        linecache.cache[cell.file] = (len(cell.code), None, cell.code.splitlines(keepends=True), cell.file)
        tree = parse(cell.code, cell.file)
        last = tree.body[-1] if tree.body else None
        expression = None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        with hide_syntax_warnings():
            statements = compile(tree, cell.file, "exec", dont_inherit=True)
            if isinstance(last, ast.Expr):
                expression = compile(ast.Expression(last.value), cell.file, "eval", dont_inherit=True)
        exec(statements, names)
        value = eval(expression, names) if expression else None
        if value is not None:
            # At least half the limit: the end of the output stays as it is when the whole is shortened.
            room = max(self._output_limit - cell.out.total, self._output_limit // 2)
            has_text = isinstance(value, Iterator) and type(value).__str__ is not object.__str__  # as hits of `grep`
            cell.out.write((shorten(str(value), room - 1) if has_text else bounded_repr(value, room - 1)) + "\n")

    def _print(self, *values: object, file: Any = None, **options: Any) -> None:
        """`print` for cells: output of threads that a cell starts goes to the cell too. Obeys `redirect_stdout`."""
        self._print_to_stream(*values, file=file or cell_thread.redirection() or self._out, **options)

    def _restore(self) -> str:
        """Restore reserved names and builtins. Returns notes for the model on those that had changed, a line each."""
        notes = ""
        original = self._original_builtins.items()
        if changed := sorted(name for name, value in original if self._builtins.get(name, _MISSING) is not value):
            self._builtins.update(original)
            names = shorten(", ".join(changed), 300)
            notes += f"[Python's builtins are shared by all cells; these were restored: {names}]\n"
        for name, value in self._reserved.items():
            current = self._namespace.get(name, _MISSING)
            if current is not value:
                self._namespace[name] = value
                notes += self._note_on_rebound(name, current)
        return notes

    def _note_on_rebound(self, name: str, current: object) -> str:
        """The note for a cell that bound the reserved `name` to `current`, or deleted it (`_MISSING`); empty if none is
        needed. A value for `answer` goes into its slot."""
        if name == "context":
            return _note_on_rebound_context(self._reserved[name])
        if name != "answer":
            return "" if name.startswith("__") else f"[`{name}` is reserved and was restored: use another name]\n"
        if isinstance(current, Mapping):
            self._answers.slot.update(current)
        elif current is not _MISSING:
            self._answers.slot["content"] = current
        if isinstance(current, dict):
            return ""
        return '[`answer` is reserved and was restored; your value is in answer["content"]]\n'


@dataclass(slots=True)
class _RunningCell:
    """A cell, and the parts of its result that are known so far."""

    file: str  # the name of its source in tracebacks
    code: str
    out: cell_thread.Buffer
    err: cell_thread.Buffer
    variables: dict[str, str] = field(default_factory=dict)
    final_answer: str | None = None
    raised: bool = True  # whether its code has raised, or its answer was refused; true until the code has ended
    claims: tuple[Claim, ...] = ()


def _safe_repr(value: object) -> str:
    """The repr of a variable, or a note that its repr raised, which is not an error of the cell."""
    try:
        return bounded_repr(value)
    except cell_thread.CellTimeout:
        raise
    except BaseException as exc:
        return f"<{type(value).__name__}: its repr raises {type(exc).__name__}>"


def _note_on_rebound_context(context: object) -> str:
    """The note for a cell that rebound `context`: weak models assign a text of their own before they look at it."""
    if context is None:
        return "[`context` is None in this session and was restored: use another name]\n"
    look = "context[:1000]" if is_text(context) else "context"  # the limit of outputs cuts what is too long
    return (
        "[You assigned to `context`, so the output above may show your own value. `context` has been restored: never "
        f"assign to it. Look at it with print({look}), and use other names for your own values]\n"
    )


def _refuse(name: str, *args: object, **options: object) -> NoReturn:
    raise RuntimeError(f"{name}() waits for a person, and nobody is there: continue without it")


def cell_traceback(exc: BaseException, file_prefix: str) -> str:
    """The traceback of `exc` for the model: only frames of cells, whose file names start with `file_prefix`."""
    trace = traceback.TracebackException.from_exception(exc)
    chain = [trace]
    for part in chain:  # the loop extends it: recursion would fail for a chain longer than the stack is deep
        frames = [frame for frame in part.stack if frame.filename.startswith(file_prefix)]
        part.stack = traceback.StackSummary.from_list(frames)
        chain += [linked for linked in (part.__cause__, part.__context__, *(part.exceptions or ())) if linked]
    for part in chain:
        # A cause without a frame of a cell comes from inside a library, and adds nothing to the message.
        if part.__cause__ is not None and not part.__cause__.stack:
            part.__cause__, part.__suppress_context__ = None, True
        if part.__context__ is not None and not part.__context__.stack:
            part.__context__ = None
    return "".join(trace.format() if trace.stack else trace.format_exception_only())
