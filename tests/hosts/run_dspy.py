"""`dspy.RLM` over 4 GiB, with our worker as its interpreter."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import dspy
from contract import ANSWER, LINE, QUESTION, Turns, measure, measure_documents, served, tell
from dspy_model import model, raises, step

from monocontext.dspy import interpreter
from monocontext.errors import ContextTooLarge

SIGNATURE = "context, question -> answer"


def final(expression: str) -> str:
    return f"SUBMIT(answer={expression})\n"


def run(given: Any, turns: Turns) -> str:
    """Ask over a lazy text, or over a `str` in the same worker."""
    lazy, inputs = (interpreter({}), {"context": given}) if isinstance(given, str) else (given, given.inputs)
    with dspy.context(lm=model(lambda asked: step(turns(asked)))):
        return str(program(lazy)(**inputs, question=QUESTION).answer)


def program(lazy: Any, **options: Any) -> dspy.RLM:
    return dspy.RLM(SIGNATURE, interpreter_factory=lazy, **options)


def run_as_a_str() -> None:
    """Methods that make large results, and `re`, on 4 GiB."""
    ask = (
        "import re\n"
        "words = context.lower().split('\\n')[0].split()\n"
        "hits = [m.span() for m, _ in zip(re.finditer('quic.', context), range(3))]\n"
        "print(words[:2], hits, context.replace('t', 'T')[:3], context.upper().startswith('THE'))\n"
    )
    with served() as text:
        turns = Turns([ask, final(repr(ANSWER))])
        assert run(interpreter(text.context), turns) == ANSWER
        assert "['the', 'quick'] [(4, 9), " in turns.asked[1], turns.asked[1][-900:]
        assert "The True" in turns.asked[1], turns.asked[1][-900:]


def sub_calls_go_to_sub_lm() -> None:
    """`llm_query` and `llm_query_batched` ask `sub_lm`, and never the root; usage tells them apart."""
    asked: list[str] = []
    ask = "print(llm_query('Shorten: ' + context[:19]), llm_query_batched(['one', 'two']))"
    with served() as text:
        given = interpreter(text.context)
        turns = Turns([ask, final(repr(ANSWER))])
        sub = model(lambda prompt: asked.append(prompt) or f"said {prompt[:3]}", "sub")  # type: ignore[func-returns-value]
        with dspy.context(lm=model(lambda seen: step(turns(seen)), "root"), track_usage=True):
            done = program(given, sub_lm=sub)(**given.inputs, question=QUESTION)
        assert done.answer == ANSWER
        assert sorted(asked) == [f"Shorten: {LINE[:19]}", "one", "two"], asked
        assert "said Sho ['said one', 'said two']" in turns.asked[1], turns.asked[1][-900:]
        used = {name: count["prompt_tokens"] for name, count in done.get_lm_usage().items()}
        assert used == {"root": 20, "sub": 30}, used


SEARCH = """\
import re
spans = [m.start() for m, _ in zip(re.finditer("qui(ck)", context), range(1200))]
print("FOUND", context.find("zebra"), sum(spans))
"""


def script(asked: str) -> str:
    """The root for all questions at once: it searches, and answers what it found with the number of its question."""
    if "number 5" in asked and "FOUND" not in asked:
        raise RuntimeError("the model is down")
    result = re.search(r"FOUND (\d+) (\d+)", asked)
    number = re.search(r"number (\d)", asked)
    if number and number[1] == "3" and "IndexError" not in asked:
        return step("context[1 << 40]")
    return step(final(f"'{number and number[1]} {result[1]} {result[2]}'") if result else SEARCH)


def many_at_once() -> None:
    """`batch`, `Parallel` and `acall`: one program and one text for all; the failure of one is that one's alone."""
    with served() as text:
        given, starts = interpreter(text.context), [m.start() for m in re.finditer("qui(ck)", text.context[:200_000])]
        expected = f"{text.context.find('zebra')} {sum(starts[:1200])}"
        rlm = program(given)
        examples = [dspy.Example(**given.inputs, question=f"number {n}").with_inputs("context", "question")
                    for n in range(6)]  # fmt: skip
        with dspy.context(lm=model(script)):
            quiet = {"num_threads": 6, "disable_progress_bar": True, "provide_traceback": False}
            done, failed, errors = rlm.batch(examples, return_failed_examples=True, max_errors=9, **quiet)
            assert [item and item.answer for item in done] == [f"{n} {expected}" for n in range(5)] + [None], done
            assert [item.question for item in failed] == ["number 5"]
            assert "the model is down" in str(errors[0]), errors
            pairs = [(rlm, item) for item in examples[:3]]
            assert [item.answer for item in dspy.Parallel(**quiet)(pairs)] == [f"{n} {expected}" for n in range(3)]
            assert asyncio.run(ask_async(rlm, given)) == [f"{n} {expected}" for n in range(3)]


async def ask_async(rlm: dspy.RLM, given: Any) -> list[str]:
    done = await asyncio.gather(*(rlm.acall(**given.inputs, question=f"number {n}") for n in range(3)))
    return [item.answer for item in done]


def errors_are_one_line() -> None:
    """A store that fails is an error in the cell, which the model sees; a text that is not wrapped is one at once."""
    with served() as text:
        given = interpreter(text.context)
        turns = Turns(["print(context[:9])", "print(context[1 << 31 : (1 << 31) + 9])", final(repr(ANSWER))])

        def reply(asked: str) -> str:
            if len(turns.asked) == 1:
                text.context.close()
            return step(turns(asked))

        with dspy.context(lm=model(reply)):
            assert program(given)(**given.inputs, question=QUESTION).answer == ANSWER
        assert re.search(r"(?s)\[Error\].*closed", turns.asked[2]), turns.asked[2][-900:]
    with served() as text, dspy.context(lm=model(lambda asked: "")), raises(ContextTooLarge) as raised:
        program(interpreter(text.context))(context=text.context, question=QUESTION)
    assert "\n" not in str(raised[0])


if __name__ == "__main__":
    run_as_a_str()
    many_at_once()
    sub_calls_go_to_sub_lm()
    errors_are_one_line()
    assert measure_documents(run, cell=str, final=final, given=interpreter) < 4_000_000
    tell(measure("dspy", run, cell=str, final=final, given=interpreter))
