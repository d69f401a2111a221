"""Takes the screenshots in docs/: `python docs/view_picture.py`. Needs playwright and a Chromium.

The text is the source of this Python's standard library, with a second version that changed some modules.
"""

from __future__ import annotations

import shutil
import sysconfig
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from monocontext import Monocontext, delete, publish, update
from monocontext.view.feed import ContextServer

DOCS = Path(__file__).parent


def store(folder: Path) -> Monocontext:
    """Two versions of some modules, and a third with one of them less."""
    source = Path(sysconfig.get_path("stdlib"))
    texts = {path.name: path.read_text("utf-8") for path in sorted(source.glob("[a-t]*.py"))}
    publish(texts, folder)
    update(folder, {name: texts[name].replace("    ", "  ") for name in ("tarfile.py", "shelve.py", "queue.py")})
    delete(folder, ["sched.py"])
    return Monocontext.open(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        context = store(Path(folder) / "stdlib")
        server = ContextServer(context)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, keys in (("light", "/raise ReadError\njjj"), ("dark", "hj")):
            page = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme=scheme)
            page.goto(server.url)
            page.locator(".row").first.wait_for()
            for key in keys:
                page.keyboard.press("Enter" if key == "\n" else key)
                page.wait_for_timeout(700 if key in "\nhj" else 20)
            page.screenshot(path=DOCS / f"view-{scheme}.png")
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
