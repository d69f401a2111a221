"""Model-written code cannot tell: same output and exception type on a `str` and a `Monocontext`, in two hosts."""

from __future__ import annotations

import re

import pytest
from namespace_blocks import BLOCKS, CUT, FOREIGN, LARGE
from namespace_hosts import Ran, run, run_in_rlm

from monocontext import Monocontext

HOSTS = {"plain": run, "rlm": run_in_rlm}
_expected: dict[tuple[str, str], Ran] = {}


@pytest.mark.slow
@pytest.mark.usefixtures("kitted")
@pytest.mark.parametrize("limit", ["default", "small"])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("block", BLOCKS)
def test_block(host: str, limit: str, block: str, text: str, contexts: dict[str, Monocontext]) -> None:
    execute = HOSTS[host]
    if (host, block) not in _expected:
        _expected[host, block] = execute(BLOCKS[block], text)
    expected = _expected[host, block]
    found = execute(BLOCKS[block], contexts[limit])

    if block in FOREIGN:
        error, said = FOREIGN[block]
        assert found.error == error
        assert said in found.message
        assert not expected.error
    elif limit == "small" and block in LARGE:
        assert found.error == LARGE[block]
        assert not expected.error
    elif block in CUT and (limit == "small" if "lines" in block else host == "plain"):  # rlm shows a text to its limit
        shown = execute(CUT[block], text).stdout.removesuffix("\n")
        assert len(shown) >= 20_000
        assert found.stdout.startswith(shown if "lines" in block else f"{shown}\n[")
        assert re.search("slice .*to see more", found.stdout[len(shown) :])
        assert len(found.stdout) < len(shown) + 2000
        assert found.error == expected.error
    else:
        assert (found.stdout, found.error) == (expected.stdout, expected.error), found.traceback


def test_blocks_that_raise_do_so_on_str_too(text: str) -> None:
    """The blocks above compare something: on a `str` all but the wrong ones run to their end."""
    wrong = {block for block, code in BLOCKS.items() if run(code, text).error}
    assert wrong == {
        "index of what is absent", "re without a match", "re with a wrong pattern", "wrong operation",
        "wrong attribute", "wrong index",
    }  # fmt: skip


def test_large_results_are_lazy_in_the_small_runs(contexts: dict[str, Monocontext], text: str) -> None:
    context = contexts["small"]
    assert type(context[10:]) is Monocontext
    assert type(context.split("\n")) is not list
    assert context == text


def test_output_on_the_way_to_a_large_value_is_kept(contexts: dict[str, Monocontext]) -> None:
    ran = run("print('before')\nprint(f'{context}')", contexts["small"])
    assert ran.stdout == "before\n"
    assert ran.error == "ContextTooLarge"
    assert "context[a:b]" in ran.message


def test_the_kit_is_what_makes_the_difference(contexts: dict[str, Monocontext]) -> None:
    """Without it `re` refuses the text and the type shows."""
    namespace: dict[str, object] = {"context": contexts["default"]}
    with pytest.raises(TypeError):
        exec("import re; re.findall('a', context)", namespace)
    exec("kind = type(context).__name__", namespace)
    assert namespace["kind"] == "Monocontext"
