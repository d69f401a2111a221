"""The three answer dialects, and each fault of the peers in them (a test named after the fault)."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from monocontext.text.from_str import wrap_str
from rlm.runners.local import LocalRunner

Make = Callable[..., LocalRunner]


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        pytest.param('answer["content"]="p"; answer["ready"]=True; 1/0', "p", id="ready then exception"),
        pytest.param('answer["ready"]=True; answer["content"]="late"', "late", id="content is read at the end"),
        pytest.param('answer.update({"content":"x","ready":True})', "x", id="update bypasses no hook"),
        pytest.param('answer |= {"content":"x","ready":True}', "x", id="in-place union"),
        pytest.param('answer = {"content":"y","ready":True}', "y", id="rebinding"),
        pytest.param('answer = {"content":"y","ready":True}\n1/0', "y", id="rebinding then exception"),
        pytest.param('answer["content"]=42; answer["ready"]=1', "42", id="other types"),
        pytest.param('answer["content"]="not ready"', None, id="not ready"),
        pytest.param("FINAL(42)", "42", id="FINAL"),
        pytest.param("FINAL('None')", "None", id="the word None"),
        pytest.param("FINAL([])", "[]", id="nothing found is an answer"),
        pytest.param("FINAL(0)", "0", id="zero"),
        pytest.param("FINAL(False)", "False", id="False"),
        pytest.param("FINAL([None, float('nan')])", "[None, nan]", id="gaps in a list are data"),
        pytest.param("FINAL({'a': None})", "{'a': None}", id="gaps in a dict are data"),
        pytest.param("SUBMIT(a=None, b=2)", "{'a': None, 'b': 2}", id="gaps in fields are data"),
        pytest.param("answer['content'] = 'mine'; FINAL(answer)", "mine", id="FINAL(answer) with content"),
        pytest.param("answer = {'content': 'mine', 'ready': False}; FINAL(answer)", "mine", id="a rebound answer"),
        pytest.param("FINAL_VAR('answer')", None, id="FINAL_VAR of an unready answer"),
        pytest.param("try:\n    FINAL(None)\nexcept:\n    FINAL('x')", None, id="a refused offer, then another"),
        *(
            pytest.param(f"import contextlib\n{code}\n{call}('not found')", "8080", id=f"{call}, {code}")
            for call in ("FINAL", "SUBMIT", "FINAL_VAR")
            for code in (
                "try:\n    FINAL(8080)\nexcept: pass",
                "for port in (8080, 9090):\n    try: FINAL_VAR(port)\n    except: continue",
                "try:\n    FINAL(8080)\nexcept BaseException:\n    SUBMIT('no port')\nfinally: pass",
                "with contextlib.suppress(BaseException): SUBMIT(8080)",
                "def f():\n    try: FINAL(8080)\n    finally: return 1\nf()",
                "answer.update(content=8080, ready=True)",
            )
        ),
        pytest.param("try:\n    FINAL('x')\nexcept:\n    FINAL(None)", "x", id="a good offer, then a refused one"),
        pytest.param("import fractions\nFINAL(fractions.Fraction(1, 2))", "1/2", id="an object with a text of its own"),
        pytest.param("try:\n    FINAL('kept')\nexcept Exception:\n    pass", "kept", id="except Exception"),
        pytest.param("try:\n    FINAL('kept')\nexcept:\n    print('on')", "kept", id="bare except does not lose it"),
        pytest.param("def f():\n    FINAL('deep')\nf()", "deep", id="from a function"),
        pytest.param("result = 'r'; FINAL(result)", "r", id="FINAL in code takes the value, not the name"),
        pytest.param("result = 'r'; FINAL_VAR('result')", "r", id="FINAL_VAR by name"),
        pytest.param("result = 'Paris'; FINAL_VAR(result)", "Paris", id="FINAL_VAR by value, a word"),
        pytest.param("FINAL_VAR([1, 2])", "[1, 2]", id="FINAL_VAR by value, no str"),
        pytest.param("x = 'y'; y = 5; FINAL_VAR(x)", None, id="FINAL_VAR of a name or a value"),
        pytest.param("FINAL_VAR('two words')", "two words", id="FINAL_VAR of a text"),
        pytest.param("SUBMIT('s')", "s", id="SUBMIT by position"),
        pytest.param("SUBMIT(answer='s')", "s", id="SUBMIT by keyword"),
        pytest.param("SUBMIT(a=1, b=2)", "{'a': 1, 'b': 2}", id="SUBMIT of several fields"),
        pytest.param("FINAL('first')\nprint('never')", "first", id="a call ends the cell"),
    ],
)
def test_answer(runner_of: Make, code: str, answer: str | None) -> None:
    result = runner_of().run(code)
    assert result.final_answer == answer
    assert "never" not in result.stdout


LAZY = "class Lazy:\n    def __str__(self): raise MemoryError('slice me')\nFINAL(Lazy())"


@pytest.mark.parametrize(
    ("call", "told"),
    [("FINAL('Errors found:', 3)", "TypeError: FINAL"), ("FINAL_VAR('Errors', 3)", "TypeError: FINAL"),
     ("FINAL_VAR('reslt')", "no variable 'reslt'"), (LAZY, "raised MemoryError('slice me')"),
     ("SUBMIT(1, a=2)", "takes values or name=value, not both"), ("SUBMIT()", "name=value, not nothing")],
)  # fmt: skip
def test_a_call_that_gives_no_answer_is_an_error(runner_of: Make, call: str, told: str) -> None:
    result = runner_of().run(call)
    assert (result.final_answer, result.raised) == (None, True)
    assert told in result.stderr


def test_the_citations_of_a_refused_answer_are_not_those_of_the_next(runner_of: Make) -> None:
    runner = runner_of("a text")
    assert runner.run("FINAL('c', sources=[(0, 2), 'text', (0, True)])").claims == ((0, 2), "text", None)
    assert runner.run("FINAL(None, sources=['a'])").claims == ()
    assert runner.run("answer.update(content='b', ready=True)").claims == ()


@pytest.mark.parametrize(
    ("code", "raised"),
    [("1/0", True), ("x = (", True), ("FINAL(None)", True), ("raise SystemExit", True), ("FINAL(1)", False),
     ("import sys; print('!', file=sys.stderr)", False), ("try:\n    FINAL(1)\nfinally:\n    1/0", False)],
)  # fmt: skip
def test_a_result_says_whether_its_code_raised(runner_of: Make, code: str, raised: bool) -> None:
    assert runner_of().run(code).raised == raised


@pytest.mark.parametrize("context", ["a str context", ["a", "list"], {"a": "dict"}])
@pytest.mark.parametrize(
    "code", ["FINAL(context)", "FINAL_VAR(context)", "FINAL_VAR('context')", "SUBMIT(context)",
             "answer['content'] = context; answer['ready'] = True", "answer = {'content': context, 'ready': True}"]
)  # fmt: skip
def test_context_itself_is_refused_and_the_model_told_to_slice(runner_of: Make, context: object, code: str) -> None:
    runner = runner_of(context)
    result = runner.run(code)
    assert result.final_answer is None
    assert "slice" in result.stderr
    assert runner.run("print('on')").final_answer is None  # refused once, not again in every cell
    assert runner.run("FINAL('ok')").final_answer == "ok"


REFUSED = [
    ("answer", "holds no content yet"),
    ("{'content': '', 'ready': False}", "holds no content yet"),
    ("{'content': None, 'ready': True}", "holds no content yet"),
    ("None", "FINAL(value)"),
    ("print(3)", "print(...)"),
    ("''", "say in words"),
    ("' \\n\\t'", "say in words"),
    ("'\\u200b\\x00'", "say in words"),
    ("...", "placeholder"),
    ("float('nan')", "NaN"),
    ("__import__('decimal').Decimal('nan')", "NaN"),
    ("(x for x in 'ab')", "list(...)"),
    ("map(str, [1])", "list(...)"),
    ("iter([1])", "list(...)"),
    ("ValueError('no')", "an exception (ValueError)"),
    ("LLMError('no')", "an exception (LLMError)"),
    ("len", "no text of its own"),
    ("lambda: 1", "no text of its own"),
    ("str", "no text of its own"),
    ("'a'.upper", "no text of its own"),
    ("__import__('re')", "no text of its own"),
    ("__import__('re').match('a', 'a')", "no text of its own"),
    ("object()", "no text of its own"),
    ("coroutine()", "await it"),
    ("[len]", "item of this list is refused"),
    ("{'a': ValueError('no')}", "item of this dict is refused"),
]
ENDINGS = [
    "v = {}\nFINAL_VAR('v')", "SUBMIT({})", "answer['content'] = {}; answer['ready'] = True",
    "v = {}\ntry:\n    FINAL(v)\nexcept:\n    pass",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize(
    ("code", "value", "told"),
    [(code, *each) for number, each in enumerate(REFUSED) for code in ("FINAL({})", ENDINGS[number % len(ENDINGS)])],
)
def test_what_says_nothing_is_refused_with_what_to_write(runner_of: Make, code: str, value: str, told: str) -> None:
    runner = runner_of()
    runner.run("async def coroutine(): pass")
    result = runner.run(code.format(value))
    assert result.final_answer is None
    assert "Answer refused: " in result.stderr
    assert told in result.stderr
    assert runner.run("print('on')").stderr == ""  # once, not again in every cell
    assert runner.run("FINAL('ok')").final_answer == "ok"
    if value == "coroutine()":
        runner.run("v = answer['content'] = None")
        gc.collect()  # it says here that nobody awaited it, not in another test


def test_a_lazy_text_in_a_list_is_refused_and_a_huge_answer_too(
    runner_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(wrap_str("word " * 50).view(materialize_limit=100))
    for value in ("[context]", "{'a': [context[1:150]]}", "({'a': context},)"):
        assert "holds a lazy text" in runner.run(f"FINAL({value})").stderr
    assert "context[a:b]" in runner.run("v = context.lower(); FINAL(v)").stderr
    assert (
        "whole stored" in runner_of("x", names={"a": wrap_str("b")}).run("answer['content'] = a; FINAL(answer)").stderr
    )
    assert "`context` is not an answer" in runner_of("plain").run("answer['content'] = context\nFINAL(answer)").stderr
    itself = runner_of("x").run("v = [1]; v += [v] * 20; FINAL(v)").final_answer
    assert itself == f"[1{', [...]' * 20}]"  # and at once, however many ways lead through it
    for value in ("notes", "more['a']"):
        tools = {"notes": wrap_str("a note"), "more": {"a": wrap_str("another")}}
        assert "whole stored text" in runner_of("plain", names=tools).run(f"FINAL({value})").stderr
        assert runner_of("plain", names=tools).run(f"FINAL({value}[2:6])").final_answer in ("note", "othe")
    monkeypatch.setattr("rlm.runners.answers.MOST_ANSWER_BYTES", 100)
    assert "at most 100 bytes" in runner.run("FINAL('x' * 101)").stderr
    assert runner.run("FINAL('é' * 50)").final_answer == "é" * 50
    assert "at most 100 bytes" in runner.run("FINAL('é' * 51)").stderr


def test_answer_bound_to_something_else_is_kept_as_content(runner_of: Make) -> None:
    runner = runner_of()
    assert 'your value is in answer["content"]' in runner.run("answer = 'Paris'").stdout
    result = runner.run("answer['ready'] = True")
    assert result.final_answer == "Paris"
