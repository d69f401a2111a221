"""The page of a context in a real browser, by keyboard alone. The console must stay empty in every test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, documents, publish
from monocontext.stores import open_store
from monocontext.testing import CountingStore
from monocontext.view.feed import ContextServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # needs Playwright, which `make test` does not install

Serve = Callable[[Monocontext], ContextServer]
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture
def page(window: Any, context: Monocontext, serving: Serve) -> Any:
    """The page, open, with the keyboard where it is at first."""
    page = window.open(serving(context).url)
    ready(page)
    shown(page, "alpha.txt line 1")
    return page


def ready(page: Any, says: str = "ready") -> None:
    page.locator("#status", has_text=says).wait_for()


def selected(page: Any) -> str:
    return page.locator(".row[aria-selected=true] .line").inner_text()


def shown(page: Any, text: str) -> None:
    """The text holds this in the line that it marks."""
    page.locator("#detail .l.hit .code", has_text=text).first.wait_for()


def press(page: Any, *keys: str) -> None:
    """Keys by their names; any longer word is typed."""
    for key in keys:
        (page.keyboard.press if len(key) == 1 or key in ("Enter", "Escape", "Tab") else page.keyboard.type)(key)


def forget_refusals(window: Any) -> None:
    """A console names each answer that refuses, also where the page shows why."""
    window.complaints[:] = [item for item in window.complaints if "400 (Bad Request)" not in item]


def test_find_a_word_and_read_it_in_place(page: Any) -> None:
    press(page, "/", "needle", "Enter")
    ready(page, "4 lines")
    assert selected(page) == "alpha.txt:150"
    shown(page, "alpha.txt line 150 with a needle")
    press(page, "j", "j")
    assert selected(page) == "src/gamma.py:450"
    page.keyboard.press("o")
    shown(page, "src/gamma.py line 450 with a needle")
    assert page.evaluate("document.activeElement.id") == "detail"
    assert page.locator("#detail mark").all_inner_texts() == ["needle"]
    assert page.locator("#detail .title h2").inner_text() == "src/gamma.py"
    lines = page.locator("#detail .l .code").all_inner_texts()
    assert "src/gamma.py line 449" in lines
    assert page.locator("#detail .l.hit").bounding_box()["y"] < page.viewport_size["height"]
    page.keyboard.press("n")
    page.locator("#detail .l .code", has_text="src/gamma.py line 800").wait_for()
    press(page, "Escape", "k")
    assert selected(page) == "beta.txt:300"


def test_open_the_third_document(page: Any) -> None:
    press(page, "d", "j", "j", "Enter")
    shown(page, "src/gamma.py line 1")
    page.locator("#detail .title .note", has_text="author: Ada").wait_for()
    press(page, "f", "Escape", "f", "*.md")
    page.locator("#count", has_text="1").wait_for()
    page.keyboard.press("Enter")
    page.locator(".row[aria-selected=true]", has_text="new.md").wait_for()
    page.keyboard.press("o")
    shown(page, "# New")


def test_go_to_a_line(page: Any, window: Any) -> None:
    for given, text in (("beta.txt:333", "beta.txt line 333"), ("12", "beta.txt line 12"), ("@0", "alpha.txt line 1")):
        press(page, "g", given, "Enter")
        shown(page, text)
        page.locator("#go").wait_for(state="hidden")
    press(page, "g", "gamma.py", "Enter")
    page.locator("#go-error", has_text="did you mean src/gamma.py").wait_for()
    page.keyboard.press("Escape")
    page.locator("#go").wait_for(state="hidden")
    forget_refusals(window)


def test_see_what_the_last_change_did(page: Any) -> None:
    page.keyboard.press("h")
    page.locator("#detail h3", has_text="1 document added").wait_for()
    page.locator("#detail h3", has_text="1 document replaced").wait_for()
    assert selected(page) == "Version 2, open here"
    assert page.locator("#detail .links button").all_inner_texts() == ["new.md", "beta.txt"]
    press(page, "o", "Tab", "Tab", "Enter")
    shown(page, "beta.txt line 1")


def test_escape_goes_back_and_help_names_every_key(page: Any) -> None:
    page.keyboard.press("h")
    page.locator("#detail h3", has_text="1 document added").wait_for()
    press(page, "o", "Escape")
    assert page.evaluate("document.activeElement.id") == "list"
    page.keyboard.press("Escape")
    assert page.locator("#tab-documents").get_attribute("aria-pressed") == "true"
    page.keyboard.press("?")
    keys = page.locator("#keys kbd").all_inner_texts()
    assert {"/", "j", "k", "o", "Enter", "Esc", "g", "d", "f", "h", "n", "p", "t"} <= set(keys)
    page.keyboard.press("Escape")
    before = page.evaluate("document.documentElement.className")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.className") != before


def test_a_long_text_scrolls_both_ways_in_bounded_memory(page: Any) -> None:
    press(page, "g", "src/gamma.py:1", "Enter")
    shown(page, "src/gamma.py line 1")
    for key, text in (("n", "# New"), ("p", "alpha.txt line 1")):
        for _ in range(100):
            if page.locator(f"#detail .l .code:text-is('{text}')").count():
                break
            page.keyboard.press(key)
            page.wait_for_timeout(50)
        assert page.locator("#detail .l .code").count() <= 8 * 300
    numbers = page.locator("#detail .l .no").all_inner_texts()
    assert numbers[:3] == ["1", "2", "3"]


def test_what_is_hostile_is_shown_and_never_run(window: Any, serving: Serve, tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "|")
    publish(documents([(name, f"{HOSTILE}\n" * 20, {HOSTILE: HOSTILE})]), tmp_path / "c")
    with Monocontext.open(tmp_path / "c") as context:
        page = window.open(serving(context).url)
        shown(page, HOSTILE)
        for keys in (["/", HOSTILE, "Enter"], ["h"], ["g", HOSTILE, "Enter"]):
            for key in keys:
                press(page, key)
            page.wait_for_timeout(300)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, iframe, object").count() == 0
        assert page.locator("script").count() == 1
    forget_refusals(window)


@pytest.mark.parametrize("width", [390, 820, 1400])
def test_every_width_holds_it(chromium: Any, context: Monocontext, serving: Serve, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 860})
    page.goto(serving(context).url)
    page.locator(".row").first.wait_for()
    for key in ("j", "h", "d"):
        page.keyboard.press(key)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_what_has_no_label_and_what_shows_no_focus(page: Any) -> None:
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [role], canvas, dialog, section, article')]
            .filter((node) => !(node.textContent.trim() || node.getAttribute('aria-label') || node.title
                || node.getAttribute('aria-labelledby') || (node.labels && node.labels.length)))
            .map((node) => node.outerHTML)"""
    )
    assert [item for item in unnamed if 'id="go-error"' not in item] == []
    assert page.locator("header, main, [role=search]").count() == 3
    seen = []
    for _ in range(14):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(
            "[document.activeElement.id || document.activeElement.className, "
            "getComputedStyle(document.activeElement).outlineStyle]"
        ))  # fmt: skip
    assert {name for name, _ in seen} >= {"search", "kind", "tab-documents", "names"}
    assert [name for name, outline in seen if outline == "none" and name] == []


def test_opening_and_moving_cost_few_gets(window: Any, place: str, serving: Serve) -> None:
    store = CountingStore(open_store(place))
    with Monocontext.open(store) as context:
        page = window.open(serving(context).url)
        shown(page, "alpha.txt line 1")
        opened = context.stats.gets
        page.keyboard.press("j")
        shown(page, "beta.txt line 1")
        assert opened <= 3
        assert context.stats.gets <= opened + 2
