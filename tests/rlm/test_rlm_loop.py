"""Runs end to end with a scripted root, over every kind of context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from rlm import RLM, Completion, ScriptedLM, Step
from rlm.context.lazy import thinking
from rlm.prompts.system import conversation

Complete = Callable[..., Completion]


def repl(code: str) -> str:
    return f"I look.\n```repl\n{code}\n```\n"


def last_user(lm: ScriptedLM, call: int) -> str:
    """What the model was told since its previous reply."""
    said = lm.calls[call]
    since = max((i for i, message in enumerate(said) if message["role"] == "assistant"), default=0)
    return "\n".join(message["content"] for message in said[since + 1 :])


def test_a_str_context(complete: Complete) -> None:
    replies = [repl("print(context.count('e'))"), repl("n = llm_query('how many?'); FINAL(n)")]
    completion = complete(replies, "needle " * 10)
    assert str(completion) == completion.answer == "HOW MANY?"
    assert (completion.finished, completion.reason, completion.iterations) == (True, "answer", 2)
    assert (completion.usage.calls, completion.io) == (3, None)


@pytest.mark.parametrize(
    ("context", "code", "answer"),
    [(["one", "two"], "FINAL(context[1])", "two"), ({"k": {"deep": 1}}, "FINAL(context['k']['deep'])", "1"),
     ([{"role": "user"}], "FINAL(len(context))", "1"), (None, "FINAL(repr(context))", "None"),
     (("t",), "FINAL(type(context).__name__)", "tuple"), (b"bytes", "FINAL(context[0])", "98")],
)  # fmt: skip
def test_other_contexts(complete: Complete, context: object, code: str, answer: str) -> None:
    assert complete([repl(code)], context).answer == answer


def test_a_lazy_context_is_hinted_and_given_time_and_accounted(complete: Complete, lazy: Any) -> None:
    replies = [repl("print(context[:20])\nprint(context[20:40])"), "FINAL(seen)"]
    completion = complete(replies, lazy)
    assert (completion.answer, lazy.hinted) == ("seen", "".join(replies))
    assert lazy.events[0] == "think"
    assert lazy.events.count("think") == lazy.events.count("thought") == 2
    assert set(lazy.events[1 : lazy.events.index("thought")]) == {"hint"}
    io = completion.trajectory[1]["code_blocks"][0]["result"]["io"]
    assert io == completion.io == {"gets": 2, "bytes": 20, "hits": 0, "ms": 500.0}
    with pytest.raises(AttributeError), thinking([lazy, cast("Any", None)]):
        raise AssertionError
    assert lazy.events[-2:] == ["think", "thought"]  # although the second text could not begin


def test_the_prompt_tells_what_is_held(lazy: Any) -> None:
    for context, told in [
        (lazy, "a LazyText: text of 8,890 characters in 1,000 lines, kept in storage"),
        ("one\ntwo", "a str of 7 characters in 2 lines"),
        (["ab", "c"], "a list of 2 items, all str, 3 characters together, the longest 2"),
        ([1, "a"], "a list of 2 items, of type int, str"),
        ({"k": 1}, "a dict with 1 key, first ['k']"),
        (None, "nothing"),
    ]:
        lm = ScriptedLM(["FINAL(1)"])
        RLM(lm=lm).completion("q", context)
        assert told in conversation(lm.calls[0])[0]["content"]
    assert lazy.stats.gets == 1


def test_messages_have_the_shape_of_rlms() -> None:
    lm = ScriptedLM([repl("1") + repl("2"), "no code", repl("FINAL(3)")])
    RLM(lm=lm, max_iterations=9).completion("what?", "text")
    said = lm.calls[-1]
    contents = [message["content"] for message in conversation(said)]
    question, _, turn = contents[0].partition("\n\nTurn 1/9: ")
    assert question == (
        'Answer the original query: "what?"\n\nThe variable `context` holds a str of 4 characters in 1 line.'
    )
    assert turn.startswith("`context` is there, and you have seen nothing of it yet. ")
    assert contents[2] == (
        "REPL output (block 1):\n1\n\nREPL output (block 2):\n2\n\n"
        "Turn 2/9. what? Answer from the output above with FINAL(...) in a block of its own; or write the next block "
        "of code if the output does not say."
    )


@pytest.mark.parametrize(
    "reply",
    ["FINAL(len(context))", "FINAL(f'{len(context)}')", "    FINAL(len(context))", "SUBMIT(answer=len(context))",
     "FINAL(context.count('t') * 2)", "x = len(context)\nFINAL(x)", "repl\nFINAL(len(context))\nprint(1)\n```",
     "~~~python\nFINAL(len(context))\n~~~", "```python3\nFINAL(len(context))\n```",
     "````py\nFINAL(len(context))\n````", "<code>\nFINAL(len(context))\n</code>", "FINAL(four)",
     "FINAL(four, sources=[(0, 4)])", "FINAL_VAR(str(four))", "**FINAL(four)**"],
)  # fmt: skip
@pytest.mark.parametrize("turns", [5, 1])
def test_an_answer_that_is_code_is_run(reply: str, turns: int) -> None:
    completion = RLM(lm=ScriptedLM([repl("four = 4"), reply]), max_iterations=turns).completion("q", "text")
    assert completion.answer == "4"


@pytest.mark.parametrize(
    "reply",
    ["I count.\n\nfour = len(context)\n\nFINAL(four)", "I count.\n\nkept = len(context) + 1\nFINAL(kept)",
     "I count.\n\nkept = len(context) + 1\nFINAL_VAR(kept)", "<shell>\nkept = 5\nFINAL(kept)\n</shell>",
     "So:\nprint(kept)\nFINAL(It is 4)", "FINAL('Errors found:', kept)", "four = len(context\nFINAL(four)",
     "```javascript\nfour = 4\n```\nFINAL(f'{four}')", "FINAL(rows[:4])", "FINAL(', '.join(rows))",
     "FINAL(context[10:20)", "FINAL(re.search(r'(t', context)", "FINAL(at = context.find('t')\nprint(at))",
     "FINAL(`context[:4]`)", "FINAL(There are {kept} items)", "FINAL('There are {kept:,} items')", "FINAL([answer])",
     "FINAL(your_answer)", "FINAL(<your final answer>)", "FINAL([answer here])", "FINAL(result)", "FINAL(FINAL(4))",
     "FINAL(failed)", "FINAL(context[max(0, at - 500):at + 1500])"],
)  # fmt: skip
def test_code_that_was_not_run_is_no_answer(reply: str) -> None:
    lm = ScriptedLM([repl("kept = 4\nfailed = 1 / 0"), reply, "FINAL(done)"])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer == "done"


@pytest.mark.parametrize(
    ("blocks", "told"),
    [(["x = context.index('zzz')", "FINAL(x)"], "ValueError"), (["FINAL(None)", "FINAL(x)"], "Answer refused"),
     (["x = (", "print(1)", "FINAL(x)"], "SyntaxError")],
)  # fmt: skip
def test_after_a_block_that_raises_no_later_block_answers(blocks: list[str], told: str) -> None:
    lm = ScriptedLM([repl("x = 'old'"), "\nThen:\n".join(map(repl, blocks)), "FINAL(done)"])
    assert RLM(lm=lm).completion("q", "text").answer == "done"
    assert told in last_user(lm, 2)
    assert f"The later blocks of your reply ({len(blocks) - 1}) were not run" in last_user(lm, 2)


def test_code_of_a_call_runs_and_stands_in_the_history() -> None:
    class Calling(ScriptedLM):
        def complete(self, messages: Any, *, model: Any = None, on_delta: Any = None) -> Any:
            reply = super().complete(messages, model=model)
            if reply.text != "call":
                return reply
            return replace(reply, text="", called="python", call_arguments='{"code": "x = 40 + 2\\nprint(x)"}')

    lm = Calling(["call", repl("FINAL(x)")])
    assert RLM(lm=lm).completion("q", "text").answer == "42"
    assert [message["content"] for message in conversation(lm.calls[1])][1] == "```repl\nx = 40 + 2\nprint(x)\n```"


def test_empty_replies_are_told_and_noted() -> None:
    lm = ScriptedLM(["", "  ", repl("print(1)"), "FINAL(done)"])
    done = RLM(lm=lm).completion("q", "text")
    assert "your reply was empty" in last_user(lm, 1)
    assert "2 of 4 replies of the root model were empty" in done.notes
    done = RLM(lm=ScriptedLM([""] * 9)).completion("q", "text")
    assert (done.reason, done.iterations) == ("repetition", 5)
    assert "5 of 5 replies of the root model were empty" in done.notes


@pytest.mark.parametrize(
    ("final", "answer"),
    [("f'{1 + 3}'", "4"), ("'a' + 'b'", "ab"), ("'%d items' % 4", "4 items"), ("', '.join(['a', 'b'])", "a, b"),
     ("str(4)", "4"), ("The set is {x, y}", "The set is {x, y}"),
     ("\\frac{kept}{2}", "\\frac{kept}{2}"), ("It is {unknown}", "It is {unknown}"), ('{"kept": 4}', '{"kept": 4}'),
     ("context[0:5] is where the name stands", "context[0:5] is where the name stands"),
     ("\"context.find('x')\"", "context.find('x')"),
     *((words, words) for words in ("the resulting text", "os.path.join", "print(x) prints x", "len", "five", "f(x)",
                                    "kept or more", "kept score", "a[0]"))],
)  # fmt: skip
def test_an_answer_that_can_only_be_code_is_run_and_other_braces_are_words(final: str, answer: str) -> None:
    lm = ScriptedLM([repl("kept = 4"), f"FINAL({final})"])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer == answer


def test_an_answer_named_answer_is_the_draft() -> None:
    lm = ScriptedLM(["FINAL(answer)", repl("answer['content'] = 'a draft'"), "FINAL(answer)"])
    assert RLM(lm=lm).completion("q", "text").answer == "a draft"
    assert "holds no content yet" in last_user(lm, 1)


def test_an_invented_turn_is_left_out_and_the_model_is_told() -> None:
    said = "```repl\nprint(1)\n```\nTurn 2/4: The output is 5.\n```repl\nFINAL(5)\n```"
    lm = ScriptedLM([said, "FINAL(1)"])
    assert RLM(lm=lm).completion("q", "text").answer == "1"
    assert "output is 5" not in str(lm.calls[1])
    assert "write the next turn itself" in last_user(lm, 1)


def test_an_empty_output_hints_at_print_and_variables_are_named() -> None:
    lm = ScriptedLM([repl("a = 1; b = 2"), "FINAL(x)"])
    RLM(lm=lm).completion("q", "text")
    assert "No output: use print(...)" in last_user(lm, 1)
    assert "REPL variables: a, b" in last_user(lm, 1)


def test_a_reply_cut_at_the_token_limit_runs_when_it_is_complete() -> None:
    lm = ScriptedLM(["```repl\nprint('ran')", "```repl\nprint('not", "FINAL(x)"])
    completion = RLM(lm=lm).completion("q", "text")
    assert "ran\n[your reply was cut off before the closing fence" in last_user(lm, 1)
    assert "Not run: your reply was cut off" in last_user(lm, 2)
    assert completion.trajectory[2]["code_blocks"][0]["code"] == "print('not"


def test_after_a_final_answer_no_later_block_runs() -> None:
    sub = ScriptedLM(str.upper)
    steps: list[Step] = []
    reply = repl("answer['content'] = 'a'; answer['ready'] = True") + repl("FINAL(llm_query('paid'))")
    completion = RLM(lm=ScriptedLM([reply]), sub_lm=sub, on_step=steps.append).completion("q", "text")
    assert completion.answer == "a"
    assert sub.calls == []
    assert [len(step.cells) for step in steps] == [1]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("x", "y"), ("'x'", "y"), ("_z", "3"), ("y[0]", None), ("'y[0]'", None), ("__name__", None),
     ("my answer", None), ("x.y", None), ("len", None)],
)  # fmt: skip
def test_text_final_var_takes_the_value_of_a_variable_and_nothing_else(name: str, answer: str | None) -> None:
    lm = ScriptedLM([repl("x = 'y'; y = [5]; _z = 3"), f"FINAL_VAR({name})", "FINAL(done)"])
    assert RLM(lm=lm).completion("q", "text").answer == (answer or "done")
    assert answer or "Answer refused" in last_user(lm, 2) or "AttributeError" in last_user(lm, 2)


def test_a_name_that_is_looked_up_is_no_look_at_the_context() -> None:
    lm = ScriptedLM(["FINAL_VAR(result)", "FINAL(a guess)", repl("context"), "FINAL(seen)"])
    assert RLM(lm=lm).completion("q", "text").answer == "seen"
    assert "no code has run" in last_user(lm, 2)


@pytest.mark.parametrize("text", ["FINAL('')", "FINAL(answer)", "FINAL(your answer)", "FINAL(...)", "SUBMIT(context)"])
def test_a_placeholder_in_text_is_refused(text: str) -> None:
    lm = ScriptedLM([text, "FINAL(ok)"])
    assert RLM(lm=lm).completion("q", "text").answer == "ok"
    assert "Answer refused" in last_user(lm, 1)


def test_a_refused_answer_goes_back_to_the_model_which_repairs_it() -> None:
    lm = ScriptedLM([repl("FINAL(answer)"), repl("FINAL(print(3))"), repl("FINAL('')"), "FINAL(3)"])
    completion = RLM(lm=lm).completion("q", "text")
    assert (completion.answer, completion.iterations, completion.finished) == ("3", 4, True)
    assert "holds no content yet" in last_user(lm, 1)
    assert "FINAL(value)" in last_user(lm, 2)
    assert "say in words" in last_user(lm, 3)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (repl("FINAL('forty-two')"), "forty-two"),
        (repl("n = x + 37") + "\n" + repl("FINAL(n)"), "42"),
        (repl("answer['content'] = x; answer['ready'] = True"), "5"),
        ("It is this:\n" + repl("FINAL_VAR('x')"), "5"),
        (repl("FINAL(The answer is 42)"), "The answer is 42"),
        (repl("The answer is 42."), "The answer is 42."),
        ("```\nThe answer is 42.\n```", "The answer is 42."),
        ("```text\nFINAL(42)\n```", "42"),
        ("```markdown\n# 42\n\nby counting\n```", "# 42\n\nby counting"),
        ("It is probably 42. ", "It is probably 42."),
        ("So:\nFINAL(42)", "42"),
        ("FINAL_VAR(x)", "5"),
        ("FINAL('{x} of {x:>2}')", "5 of  5"),
        ("FINAL({x})", "5"),
        ("FINAL('{x} of {nope}')", "a draft"),
        ("As JSON:\n```json\n{}\n```", "As JSON:\n```json\n{}\n```"),
        (repl("print(x)"), "a draft"),
        (repl("FINAL(None)"), "a draft"),
        ("FINAL_VAR(unknown)", "a draft"),
        ("FINAL(answer)", "a draft"),
        ("", "a draft"),
        ("Because of this:\n" + repl("print(x)"), "a draft"),
        ("```repl\nFINAL('cut", "a draft"),
    ],
)
def test_a_forced_answer_is_run_or_stripped_never_a_fenced_block(reply: str, answer: str) -> None:
    lm = ScriptedLM([repl("x = 5; answer['content'] = 'a draft'"), reply])
    completion = RLM(lm=lm, max_iterations=1).completion("q", "text")
    assert completion.answer == completion.trajectory[-1]["final_answer"] == answer
    assert (completion.finished, completion.reason, completion.iterations) == (False, "max_iterations", 1)
    assert "All 1 turns are used" in last_user(lm, 1)
