"""Runs cells in this process, with the rights of its user. No sandbox."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, NoReturn, Protocol

from rlm import hooks
from rlm.answers import Answers, FinalAnswer
from rlm.capture import Buffer, captured, redirection, routed
from rlm.errors import AnswerRefused, LLMError
from rlm.excerpt import bounded_repr
from rlm.runner import CellResult
from rlm.runners.cell_thread import CellRunner, CellThread, CellTimeout
from rlm.subcalls import SubCall
from rlm.syntax import parse, quiet
from rlm.tracebacks import cell_traceback

_runs = itertools.count(1)


class Calls(Protocol):
    """The model calls of a namespace: `SubCalls`, or what stands for it in a worker."""

    def llm_query(self, prompt: str, model: str | None = None) -> str: ...

    def llm_query_batched(
        self, prompts: Iterable[str], model: str | None = None, return_exceptions: bool = False
    ) -> list[str | LLMError]: ...

    def drain(self) -> tuple[SubCall, ...]: ...

    @property
    def waited_seconds(self) -> float: ...


class LocalRunner:
    """One persistent namespace; `context` is in it by reference, never copied, never turned into a str.

    A cell may run `cell_timeout` seconds, time spent waiting for sub-calls not counted. Then an exception is raised in
    its thread. Code that waits inside one C call (a socket, `time.sleep`) does not notice before that call returns: the
    run goes on without it after a second, and the thread ends when the call does. A C call that never gives up the
    interpreter (a catastrophic `re` match, `10**10**9`) stops the whole process until it returns; nothing in this
    process can end it.
    """

    def __init__(
        self,
        context: object,
        subcalls: Calls,
        *,
        cell_timeout: float | None = 120.0,
        output_limit: int = 20_000,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        thread: CellRunner | None = None,
    ) -> None:
        """`functions`: more names for the namespace, restored after each cell as the others are. `thread`: where cells
        run, by default a thread of their own."""
        self._subcalls = subcalls
        self._cell_timeout = math.inf if cell_timeout is None else cell_timeout
        self._output_limit = output_limit
        self._files = f"<cell {next(_runs)}."
        self._sources: list[str] = []
        self._out = Buffer(output_limit)
        self._thread = thread or CellThread()
        self._answers = Answers(context)
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        kit = hooks.namespace_kit(context)
        self._transform = kit.transform if kit else None
        self._ran = getattr(kit, "ran", None)
        names = dict(kit.names) if kit else {}
        # A name that is a builtin replaces the builtin of this namespace; any other becomes a variable.
        shims = {name: names.pop(name) for name in list(names) if hasattr(builtins, name)}
        self._reserved: dict[str, Any] = {
            "__builtins__": self._builtins(shims),
            "context": context,
            "answer": self._answers.slot,
            "llm_query": subcalls.llm_query,
            "llm_query_batched": subcalls.llm_query_batched,
            "LLMError": LLMError,
            "SHOW_VARS": self.show_vars,
            **(functions or {}),
            **self._answers.functions(self._namespace),
        }
        self._namespace |= names | self._reserved
        self._given = frozenset(self._namespace)

    def run(self, code: str) -> CellResult:
        """Run one cell; assignments made before an exception are kept, reserved names are put back."""
        started = time.perf_counter()
        waited = self._subcalls.waited_seconds
        # What stands for the sub-calls in a worker knows no budget: there the host says what is left of it.
        run_left: Callable[[], float] = getattr(self._subcalls, "seconds_left", lambda: math.inf)
        cell = _Cell(f"{self._files}{len(self._sources) + 1}>", code, self._output_limit)
        self._sources.append(cell.file)
        self._out = cell.out

        def seconds_left() -> float:
            own = self._cell_timeout - (time.perf_counter() - started) + (self._subcalls.waited_seconds - waited)
            # Past the budget of the run a cell still has a second: to end, and for the cell that asks for a draft.
            return min(own, max(run_left(), started + 1 - time.perf_counter()))

        with routed():
            ended = self._thread.run(lambda: self._execute(cell), seconds_left)
        if not ended:
            cell.err.write(
                f"CellTimeout: the cell ran longer than {self._cell_timeout:g} s and could not be stopped, because it "
                "waits inside a C call. It is left behind until that returns; its variables may still change.\n"
            )
            self._collect(cell)
        self._restore(cell)
        stderr = cell.err.text()
        return CellResult(
            stdout=cell.out.text(self._output_limit - len(stderr)),
            stderr=stderr,
            variables=cell.variables,
            calls=self._subcalls.drain(),
            final_answer=cell.final_answer,
            execution_seconds=time.perf_counter() - started,
        )

    def variable(self, name: str) -> str:
        """The text of a variable, for an answer. Raises AnswerRefused."""
        return self._answers.named(name, self._namespace)

    def close(self) -> None:
        """Let the thread end and forget the sources."""
        self._thread.close()
        for file in self._sources:
            linecache.cache.pop(file, None)

    def show_vars(self) -> dict[str, str]:
        """The variables made so far: name -> type and value, cut."""
        return {name: f"{type(value).__name__}: {bounded_repr(value)}" for name, value in self._variables().items()}

    def _variables(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in list(self._namespace.items())
            if isinstance(name, str)  # globals() takes other keys too
            and name not in self._given
            and not name.startswith("_")
            and not isinstance(value, ModuleType)
        }

    def _execute(self, cell: _Cell) -> None:
        """On the cell's thread: run the code, then see what it left behind."""
        with captured(cell.out, cell.err):
            try:
                try:
                    self._exec(cell)
                finally:
                    self._thread.calm()
            except FinalAnswer:
                pass
            except CellTimeout as exc:
                cell.err.write("".join(cell_traceback(exc, self._files).splitlines(keepends=True)[:-1]))
                cell.err.write(f"CellTimeout: stopped after {self._cell_timeout:g} s; variables set before are kept.\n")
            except SystemExit as exc:
                cell.err.write(f"SystemExit({exc.code!r}): a cell cannot end the session; to finish, answer.\n")
            except BaseException as exc:
                cell.err.write(cell_traceback(exc, self._files))
            try:
                self._collect(cell)
                shown = {"context": self._reserved["context"], **self._variables()}
                cell.variables = {name: bounded_repr(value) for name, value in shown.items()}
            except BaseException as exc:  # the cell's own `__repr__`, say, raises SystemExit
                cell.err.write(cell_traceback(exc, self._files))

    def _collect(self, cell: _Cell) -> None:
        if self._ran:
            self._ran(self._namespace)
        try:
            cell.final_answer = self._answers.collect(self._namespace)
        except AnswerRefused as exc:
            cell.err.write(f"Answer refused: {exc}\n")

    def _exec(self, cell: _Cell) -> None:
        linecache.cache[cell.file] = (len(cell.code), None, cell.code.splitlines(keepends=True), cell.file)
        tree = parse(cell.code, cell.file)
        if self._transform:
            tree = ast.fix_missing_locations(self._transform(tree))
        last = _last_expression(tree)
        with quiet():
            body = compile(tree, cell.file, "exec", dont_inherit=True)
            tail = compile(last, cell.file, "eval", dont_inherit=True) if last else None
        exec(body, self._namespace)
        value = eval(tail, self._namespace) if tail else None
        if value is not None:
            cell.out.write(bounded_repr(value, self._output_limit) + "\n")

    def _restore(self, cell: _Cell) -> None:
        """Put the reserved names back, and say so."""
        missing = object()
        for name, value in self._reserved.items():
            found = self._namespace.get(name, missing)
            if found is value:
                continue
            self._namespace[name] = value
            if name == "answer":
                if found is not missing:
                    self._answers.adopt(found)
                if not isinstance(found, dict):
                    cell.out.write('[`answer` is reserved and was restored; your value is in answer["content"]]\n')
            elif not name.startswith("__"):
                cell.out.write(f"[`{name}` is reserved and was restored: use another name]\n")

    def _builtins(self, shims: dict[str, Any]) -> dict[str, Any]:
        own = vars(builtins) | shims
        return own | {
            "print": self._printer(own["print"]),
            "input": _nobody_there("input"),
            "breakpoint": _nobody_there("breakpoint"),
            "exit": sys.exit,  # the ones of the interactive interpreter close the process's stdin
            "quit": sys.exit,
        }

    def _printer(self, inner: Callable[..., None]) -> Callable[..., None]:
        """A print that reaches the cell's output from threads of the cell too, and obeys `redirect_stdout`."""

        def print(*values: object, file: Any = None, **options: Any) -> None:
            inner(*values, file=file or redirection() or self._out, **options)

        return print


class _Cell:
    """One cell while it runs."""

    def __init__(self, file: str, code: str, output_limit: int) -> None:
        self.file = file
        self.code = code
        self.out = Buffer(output_limit)
        self.err = Buffer(output_limit // 4)  # a traceback is short, and its end is what counts
        self.variables: dict[str, str] = {}
        self.final_answer: str | None = None


def _nobody_there(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise RuntimeError(f"{name}() waits for a person, and nobody is there")

    return refuse


def _last_expression(tree: ast.Module) -> ast.Expression | None:
    """Taken out of the tree, so that it is evaluated once."""
    if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
        return None
    tree.body.pop()
    return ast.Expression(last.value)
