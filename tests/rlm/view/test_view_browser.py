"""The page in a real browser, headless. Skips where none is installed. The console must stay empty in every test."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from view_lines import head, line, write

from rlm import RLM, ScriptedLM
from rlm.trajectory.trajectory import partial_of
from rlm.view.feed import RowFeed
from rlm.view.page import ViewServer, export

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # needs Playwright, which `make test` does not install

Serve = Callable[[Path], ViewServer]
HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
    "<a href='javascript:window.hacked=1'>x</a>{{7*7}}"
)


def rows(page: Any) -> list[str]:
    return page.locator(".row .line").all_inner_texts()


def selected(page: Any) -> str:
    return page.locator(".row[aria-selected=true] .no").inner_text()


def pixels(page: Any, canvas: str) -> list[int]:
    """How many pixels of each lane are painted in something else than its track."""
    return page.evaluate(
        """(id) => {
            const canvas = document.getElementById(id), copy = document.createElement('canvas');
            [copy.width, copy.height] = [canvas.width, canvas.height];
            const pen = copy.getContext('2d', { willReadFrequently: true });
            pen.drawImage(canvas, 0, 0);
            const track = getComputedStyle(document.documentElement).getPropertyValue('--track').trim();
            const want = [1, 3, 5].map((i) => parseInt(track.slice(i, i + 2), 16));
            const found = [];
            for (let top = 0; top + 16 <= Math.min(canvas.height, 80); top += 16) {
                const data = pen.getImageData(0, top + 3, canvas.width, 10).data;
                let painted = 0;
                for (let i = 0; i < data.length; i += 4) {
                    if (want.some((value, c) => Math.abs(data[i + c] - value) > 40)) painted += 1;
                }
                found.push(painted);
            }
            return found;
        }""",
        canvas,
    )


@pytest.fixture(params=["served", "written"])
def url(request: pytest.FixtureRequest, serving: Serve, tmp_path: Path) -> Callable[[Path], str]:
    """Where the page of a run is: at a server, or in a file."""

    def of(path: Path) -> str:
        if request.param == "served":
            return serving(path).url
        export(RowFeed(path), tmp_path / "page.html")
        return (tmp_path / "page.html").as_uri()

    return of


def test_shows_a_run(window: Any, recorded: Path, url: Callable[[Path], str]) -> None:
    page = window.open(url(recorded))
    assert page.locator("h1").inner_text() == "What stands there?"
    assert page.locator("#status").inner_text() == "ended"
    assert page.locator(".row").count() == 5
    answer = RowFeed(recorded).state()["rows"][-1]["answer"]
    assert answer in page.locator("#answer").inner_text()
    assert selected(page) == "4"
    figures = page.locator("#figures").inner_text()
    assert "gpt-5, gpt-5-nano" in figures
    assert re.search(r"Calls of models\s+6\b", figures)
    assert "2.3 % (240 characters)" in figures
    think, _, _, storage, ahead = pixels(page, "timeline")
    assert min(think + storage, ahead) > 0
    page.locator(".row", has_text="replies = llm_query_batched").click()
    page.locator("#detail pre", has_text="replies = llm_query_batched").wait_for()
    assert page.locator("#detail pre .r").all_inner_texts() == ["llm_query_batched"]
    page.locator("#detail summary", has_text="ALL THE TEXT").first.click()
    page.locator("#detail h3", has_text="Prompt to gpt-5-nano").wait_for()
    page.locator(".row", has_text="parts = [context").click()
    page.locator("#detail pre", has_text="parts = ").wait_for()


def test_what_is_hostile_is_shown_and_never_run(window: Any, tmp_path: Path, url: Callable[[Path], str]) -> None:
    call: dict[str, Any] = dict.fromkeys(("root_model", "prompt", "response", "error"), HOSTILE)
    call |= {"execution_time": 1, "iterations": [line(1)]}
    result = {"stdout": HOSTILE, "stderr": HOSTILE, "locals": {HOSTILE: HOSTILE, "__proto__": "x"}, "execution_time": 1,
              "rlm_calls": [call], "final_answer": HOSTILE, "ranges": [[0, 5]]}  # fmt: skip
    whole = line(1, code_blocks=[{"code": HOSTILE, "result": result}], response=HOSTILE, final_answer=HOSTILE,
                 notice=HOSTILE, model=HOSTILE, reason=HOSTILE, question=HOSTILE,
                 prompt=[{"role": HOSTILE, "content": HOSTILE}])  # fmt: skip
    context = {"uri": HOSTILE, "type": HOSTILE, "chars": 10}
    path = write(tmp_path / "<img src=x onerror=alert(1)>.jsonl",
                 head(query=HOSTILE, context=context, environment_type=HOSTILE, root_model=HOSTILE), whole)  # fmt: skip
    page = window.open(url(path))
    page.locator("#detail h3", has_text="Code").wait_for()
    for _ in range(5):  # what opens may hold more to open
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.wait_for_timeout(50)
    page.locator("#detail h3", has_text="Prompt to").wait_for()
    page.locator("#detail th").first.wait_for()
    page.locator("canvas").first.hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, object, a[href^=javascript]").count() == 0
    assert page.locator("script:not([type])").count() == 1
    text = page.locator("body").inner_text()
    assert text.count(HOSTILE) >= 10
    assert "49" not in page.locator("h1").inner_text()


def test_keys(window: Any, recorded: Path, url: Callable[[Path], str]) -> None:
    page = window.open(url(recorded))
    press = page.keyboard.press
    seen = []
    for key in ("Home", "j", "ArrowDown", "k", "n", "a", "p", "End", "Home", "PageDown"):
        press(key)
        seen.append(selected(page))
    assert seen == ["1", "2.1", "2.2", "2.1", "3", "4", "3", "4", "1", "4"]
    press("/")
    page.keyboard.type("replies")
    assert rows(page) == ["replies = llm_query_batched(parts)", "FINAL(replies[0][:11])"]
    press("Enter")
    press("Home")
    assert selected(page) == "2.2"
    page.locator("#search").fill("")
    page.locator("#kind").select_option("errors")
    assert rows(page) == ["print(nothing)"]
    page.locator("#kind").select_option("all")
    press("Escape")
    press("?")
    assert page.locator("#keys").is_visible()
    press("Escape")
    page.locator("#keys").wait_for(state="hidden")
    before = page.evaluate("document.documentElement.className")
    press("t")
    assert page.evaluate("document.documentElement.className") != before
    assert page.locator("#cells").get_attribute("aria-activedescendant") is not None
    press("+")
    press("0")
    press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"


def test_follows_a_run_in_progress(window: Any, tmp_path: Path, serving: Serve) -> None:
    path, go = tmp_path / "run.jsonl", [threading.Event() for _ in range(3)]

    def root(prompt: object) -> str:
        go[0].wait(60)
        return (
            "```repl\nx = llm_query_batched(['one', 'two'])\nprint(x)\n```" if not path_has_turn() else "FINAL(the end)"
        )

    def path_has_turn() -> bool:
        return path.read_text().count("\n") > 1

    def sub(prompt: str) -> str:
        if prompt == "two":
            go[1].wait(60)
        return prompt.upper()

    run = threading.Thread(
        target=RLM(lm=ScriptedLM(root), sub_lm=ScriptedLM(sub), trajectory=path).completion, args=("q", "text")
    )
    run.start()
    try:
        while not path.exists() or not path.stat().st_size:
            pass
        page = window.open(serving(path).url)
        page.locator(".row.live", has_text="the root model is thinking").wait_for()
        assert page.locator("#status").inner_text() == "in progress"
        go[0].set()
        page.locator(".row.live", has_text="code runs, 1 sub-call answered").wait_for()
        page.locator("#detail", has_text="ONE").wait_for()
        go[1].set()
        page.locator("#status.ended").wait_for()
        assert page.locator(".row").count() == 2
        assert "the end" in page.locator("#answer").inner_text()
        assert page.locator(".row.live").count() == 0
    finally:
        for event in go:
            event.set()
        run.join()
    assert not partial_of(path).exists()
