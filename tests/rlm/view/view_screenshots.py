"""Takes the screenshots in docs/: `python tests/rlm/view/view_screenshots.py`. Needs playwright and a Chromium.

The text is the source of this Python's standard library behind a store that is as slow as a bucket; the reads, waits
and errors are real. The replies are scripted, and so is the time that they take; prices are those of the named models.
"""

from __future__ import annotations

import re
import shutil
import sysconfig
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.testing import SlowStore
from rlm import RLM, Reply, ScriptedLM
from rlm.view import RowFeed, export

DOCS = Path(__file__).parents[3] / "docs"
QUESTION = "Which exceptions can reading a damaged tar archive raise, and how many bytes is a record of an archive?"
TURNS = [
    ("I look at what I hold before I do anything with it.",
     'print(type(context), f"{len(context):,} characters")\nprint(context[:300])\nprint("...")\nprint(context[-200:])'),
    ("The files stand under header lines. I find the module and its end.",
     'at = context.find("\\nclass TarFile(")\nstart = context.rfind("=== FILE: ", 0, at)\n'
     'stop = context.find("=== FILE: ", at)\nmodule = context[start:stop]\n'
     'print(module.splitlines()[0], f"characters {start:,} to {stop:,}")'),
    ("The passages around each `raise` go to the smaller model, all at once.",
     'import re\nraised = [match.start() for match in re.finditer(r"raise ReadError|raise \\w*HeaderError", module)]\n'
     'prompts = [f"Does this concern damaged input? yes or no.\\n\\n{module[i - 900:i + 300]}" for i in raised]\n'
     'verdicts = llm_query_batched(prompts)\nprint(len(prompts), "passages:", verdicts)'),
    ("Of those, the names.",
     'damaged = sorted({re.match(r"raise (\\w+)", module[i:])[1] for i, verdict in zip(raised, verdicts)\n'
     '                  if verdict == "yes"})\n# the constant: defined once, in other modules too?\n'
     'constant = context.find("RECORDSIZE =", start)\nprint(damaged, context[constant - 60:constant + 60])'),
    ("One more look at the arithmetic, then the answer.",
     'lines = context[constant - 200:constant + 60]\n'
     'size = llm_query(f"How many bytes is RECORDSIZE? The number alone.\\n\\n{lines}")\n'
     'answer["content"] = f"Damaged archives raise {\', \'.join(damaged)}. A record is {size} bytes."\n'
     'answer["ready"] = True'),
]  # fmt: skip


class Timed(ScriptedLM):
    """Takes its time, and counts tokens as four characters each."""

    def complete(self, messages, *, model=None, on_delta=None):  # type: ignore[no-untyped-def]
        told = sum(len(message["content"]) for message in messages)
        time.sleep(0.35 + len(str(messages)) % 23 / 20)
        reply = super().complete(messages, model=model, on_delta=on_delta)
        return Reply(reply.text, told // 4, 30 + len(reply.text) // 4, reply.model, None)


def small(prompt: object) -> str:
    """The smaller model: reads the two numbers, or looks for words of damage."""
    block = re.search(r"^BLOCKSIZE = (\d+)", str(prompt), re.M)
    if "RECORDSIZE" in str(prompt) and block:
        return str(int(block[1]) * 20)
    return "yes" if re.search(r"truncated|bad|damaged|invalid|unexpected end|corrupt", str(prompt)) else "no"


def record(folder: Path) -> Path:
    """The run."""
    publish([Path(sysconfig.get_path("stdlib"))], str(folder / "stdlib"), include=("*.py",),
            exclude=("site-packages/*", "lib2to3/*"), errors="replace")  # fmt: skip
    replies = [f"{said}\n```repl\n{code}\n```" for said, code in TURNS]
    path = folder / "tarfile.jsonl"
    with Monocontext.open(SlowStore(open_store(str(folder / "stdlib")), 0.04, bytes_per_second=60e6)) as context:
        root, reader = Timed(replies, model="gpt-5"), Timed(small, model="gpt-5-nano")
        print(RLM(lm=root, sub_lm=reader, trajectory=path).completion(QUESTION, context).answer)
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        target = Path(folder) / "page.html"
        export(RowFeed(record(Path(folder))), target)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, row in (("light", 3), ("dark", 4)):
            page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
            page.goto(target.as_uri())
            page.locator(".row").nth(row).click()
            page.wait_for_timeout(300)
            page.screenshot(path=DOCS / f"rlm-view-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
