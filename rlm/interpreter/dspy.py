"""Run the code of `dspy.RLM` (3.4) in our sandbox: what `monocontext.dspy.interpreter` returns."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import dspy
from dspy.primitives.code_interpreter import CodeExecutionError, FinalOutput

from rlm.context.description import describe
from rlm.context.lazy import is_lazy
from rlm.interpreter.interpreter import Interpreter
from rlm.runners.runner import DEFAULT_RUNNER

_INSTRUCTIONS = """\
Code runs in CPython, confined: without network, files and keys. Inputs that are kept in storage read like a str, and \
only what code looks at is fetched: slices, `in`, `find`, `count`, `re` work on them, `text.lines[a:b]` gives lines, \
`text.grep(pattern)` hits with `.offset`, `.line_number` and `.line`, and `text.chunks(100_000)` pieces for one pass."""
_POSITIONAL = frozenset((Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL))  # kinds that take no keyword


def interpreter(
    context: object, *, runner: str = DEFAULT_RUNNER, timeout: float = 600, **runner_options: Any
) -> InterpreterFactory:
    """A factory for `dspy.RLM(interpreter_factory=...)`. `context`: texts by name, or one text, named `context`."""
    texts = {"context": context} if is_lazy(context) or not isinstance(context, Mapping) else context
    return InterpreterFactory(texts, {"runner": runner, "timeout": timeout, **runner_options})


class LazyInput(dspy.SandboxSerializable):  # type: ignore[misc]
    """A lazy text as an input (DSPy's protocol `SandboxSerializable`). The sandbox already has it under its name."""

    def __init__(self, name: str, text: object) -> None:
        self.name, self.text = name, text

    def sandbox_setup(self) -> str:
        return ""

    def to_sandbox(self) -> bytes:
        return b""

    def sandbox_assignment(self, var_name: str, data_expr: str) -> str:
        return f"{var_name} = {self.name}"

    def rlm_preview(self, max_chars: int = 500) -> str:
        described = describe(self.text)
        note = f"{described.sentence} (DSPy gives the length of this note, not of the text). {described.access}"
        return note.strip()[:max_chars]


class InterpreterFactory:
    """Makes an interpreter for each run of `dspy.RLM(..., interpreter_factory=...)`."""

    execution_instructions = _INSTRUCTIONS

    def __init__(self, texts: Mapping[str, object], options: Mapping[str, Any]) -> None:
        self._texts, self._options = dict(texts), options
        self.inputs = {name: LazyInput(name, text) for name, text in texts.items()}
        """The texts as inputs of the program: `program(**factory.inputs, question=...)`."""

    def __call__(self) -> DspyInterpreter:
        return DspyInterpreter(names=self._texts, **self._options)


class DspyInterpreter(Interpreter):
    """The interpreter of one run, which follows DSPy's protocol `CodeInterpreter`."""

    output_fields: Sequence[dict[str, Any]] = ()  # the fields of the program's output, in the order of `SUBMIT`
    _caller_context: contextvars.Context  # of the caller of `execute`, with its `dspy.context`: tools run in it

    def execute(self, code: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Run code. Returns a `FinalOutput` if it submits, else its output. Raises `CodeExecutionError` if it fails."""
        self._caller_context = contextvars.copy_context()
        out, err = self._run_code(code, variables)
        if self._submitted is not None:
            return FinalOutput(self._submitted)
        if err:
            raise CodeExecutionError(f"{out}{err}".strip())
        return out

    def _call(self, name: str, arguments: list[Any], options: dict[str, Any]) -> Any:
        return self._caller_context.copy().run(_call_tool, self.tools[name], arguments, options)

    def _submit(self, values: list[Any], fields: dict[str, Any]) -> None:
        names = [field["name"] for field in self.output_fields]
        if values and len(values) == len(names):
            fields = dict(zip(names, values, strict=True))
        self._submitted = fields or {"output": values}  # DSPy then tells the model which fields are missing


def _call_tool(tool: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The result of a tool, awaited if need be. Arguments are passed by keyword, as in DSPy, if possible."""
    bound = inspect.signature(tool).bind(*arguments, **options)
    kinds = {name: bound.signature.parameters[name].kind for name in bound.arguments}
    if _POSITIONAL.isdisjoint(kinds.values()):
        named = {name: value for name, value in bound.arguments.items() if kinds[name] is not Parameter.VAR_KEYWORD}
        returned = tool(**named | bound.kwargs)
    else:
        returned = tool(*bound.args, **bound.kwargs)
    if not inspect.isawaitable(returned):
        return returned
    return asyncio.run(asyncio.wait_for(returned, None))  # `run` takes only a coroutine
