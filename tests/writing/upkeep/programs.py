"""Random programs that change a context and a dict alike, and what must then hold of every way to read the context."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from monocontext import Monocontext, append, delete, publish, replace, update
from monocontext.errors import MonocontextError
from monocontext.stores.protocol import Store
from monocontext.writing.upkeep.compact import add_filters, compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.sync import sync
from monocontext.writing.upkeep.versions import restore

WORDS = ("alpha", "gamma ray", "délta", "ΐota", "kilo\n", "x", "\n", "\r\n", "日本語テキスト", "12:34:56")
STEPS = (
    *("replace", "replace", "delete", "append", "update", "sync"),
    *("compact", "filters", "gc", "forget", "restore", "open"),
)


def whole_of(texts: dict[str, str]) -> str:
    """What a publish of these documents stores."""
    return "".join(text if not text or text.endswith("\n") else text + "\n" for text in texts.values())


def check(store: Store, texts: dict[str, str], chance: random.Random) -> None:
    """The text, its documents and what searches find in it are those of `texts`."""
    whole = whole_of(texts)
    with Monocontext.open(store) as context:
        assert str(context) == whole
        assert "".join(context.lines) == whole
        assert len(context.lines) == whole.count("\n")
        assert {name: str(context.documents[name]) for name in context.documents} == texts
        for name in context.documents:
            record = context.documents.record(name)
            assert record.first_line == whole.count("\n", 0, record.start)
            assert record.newlines == texts[name].count("\n")
    if not whole:
        return
    with Monocontext.open(store) as context:  # nothing of it is in memory
        for _ in range(4):
            at = chance.randrange(len(whole))
            needle = whole[at : at + chance.choice((3, 8, 20, 40))]
            assert (context.find(needle), context.count(needle)) == (whole.find(needle), whole.count(needle))
            assert context.lower().find(needle.lower()) == whole.lower().find(needle.lower())
        line = chance.choice(whole.split("\n")).strip("\r")
        if word := line[:20].strip():
            hits = [(hit.line_number, hit.line) for hit in context.grep(word, fixed=True)]
            assert hits == [(number, each) for number, each in enumerate(whole.split("\n"), 1) if word in each]
    with Monocontext.open(store, shape="dict") as lazy:
        name = chance.choice(list(texts))
        assert (lazy[name], list(lazy)) == (texts[name], list(texts))


class Program:
    """Random steps over a context and over a dict. Files of `folder` are what `sync` sees."""

    def __init__(self, store: Store, seed: int, folder: Path, most: int = 200) -> None:
        self.chance = random.Random(seed)
        self.store, self.folder, self.most = store, folder / "files", most
        self.folder.mkdir()
        self.texts = {f"d{number}": self.text(most) for number in range(self.chance.choice((1, 5, 30, 120)))}
        self.count = len(self.texts)
        self.files: dict[str, str] = {}
        self.opened: list[tuple[Monocontext, str]] = []
        """Readers of earlier generations, each with its text."""
        publish(dict(self.texts), store, frame_bytes=self.chance.choice((64, 600, 600, 2048)))
        self.versions = {1: dict(self.texts)}

    def text(self, most: int) -> str:
        words = (self.chance.choice((*WORDS, f"w{self.chance.randrange(3000):x}q")) for _ in range(most))
        return "".join(word + self.chance.choice((" ", "\n")) for word in words)[: self.chance.randrange(4 * most)]

    def some(self) -> list[str]:
        names = list(self.texts)
        return self.chance.sample(names, min(len(names), self.chance.choice((1, 1, 2, 5))))

    def changed(self) -> dict[str, str]:
        return {name: self.text(self.chance.choice((1, 60, self.most))) for name in self.some()}

    def new(self) -> dict[str, str]:
        found = {f"d{self.count + number}": self.text(60) for number in range(self.chance.randrange(4))}
        self.count += len(found)
        return found

    def step(self) -> None:
        """Take a step of a random kind, and check what it left."""
        kind = self.chance.choice(STEPS)
        if kind == "open":
            self.opened.append((Monocontext.open(self.store, cache_bytes=0), whole_of(self.texts)))
        else:
            upkeep = {"compact": compact, "filters": add_filters, "gc": lambda store: gc(store, older_than_seconds=0)}
            upkeep[kind](self.store) if kind in upkeep else getattr(self, f"_{kind}")()
        check(self.store, self.texts, self.chance)
        self._look_back(kind)
        with Monocontext.open(self.store) as context:
            self.versions[context.generation] = dict(self.texts)

    def _look_back(self, kind: str) -> None:
        """Earlier generations read as they were. Once they are removed, that or an error."""
        is_removed = kind in ("gc", "forget")
        for context, whole in self.opened:
            at = self.chance.randrange(len(whole) + 1)
            piece = whole[at : at + 9]
            read: tuple[Callable[[], bool], ...] = (
                lambda text=context, at=at, piece=piece: text[at : at + 9] == piece,
                lambda text=context, whole=whole, piece=piece: text.find(piece) == whole.find(piece),
                lambda text=context, whole=whole: str(text) == whole,
            )
            try:
                assert self.chance.choice(read)()
            except MonocontextError:
                assert is_removed
        if is_removed or len(self.opened) > 3:
            self.opened.clear()
        if is_removed:
            self.versions.clear()
        elif self.versions:
            number = self.chance.choice(list(self.versions))
            with Monocontext.open(self.store, generation=number) as context:
                assert str(context) == whole_of(self.versions[number])

    def _replace(self) -> None:
        self._change(replace, self.changed())

    def _update(self) -> None:
        self._change(update, self.changed() | self.new())

    def _append(self) -> None:
        self._change(lambda store, texts: append(texts, store), self.new())

    def _change(self, verb: Callable[[Store, dict[str, str]], object], changed: dict[str, str]) -> None:
        verb(self.store, dict(changed))
        self.texts |= changed

    def _delete(self, forget: bool = False) -> None:
        gone = self.some()
        delete(self.store, gone, forget=forget)
        self.texts = {name: text for name, text in self.texts.items() if name not in gone}

    def _forget(self) -> None:
        self._delete(forget=True)

    def _restore(self) -> None:
        if self.versions:
            number = self.chance.choice(list(self.versions))
            restore(self.store, number)
            self.texts = dict(self.versions[number])

    def _sync(self) -> None:
        """The folder gets what the context holds but for some changes. A file that stays is not written again, also
        where its document was replaced meanwhile."""
        before = dict(self.texts)
        stays = {name: self.files[name] for name in self.some() if name in self.files}
        wanted = before | self.changed() | stays | self.new()
        for name in self.some():
            del wanted[name]
        for name in self.files.keys() - wanted.keys():
            (self.folder / name).unlink()
        for name, text in wanted.items():
            if self.files.get(name) != text:
                (self.folder / name).write_bytes(text.encode())
                os.utime(self.folder / name, ns=(0, self.chance.randrange(1 << 60)))
        self.files = wanted
        if not wanted:
            return
        done = sync(self.folder, self.store, delete=True)
        assert set(done.added) == wanted.keys() - before.keys()
        assert set(done.changed) == {name for name in wanted if before.get(name, wanted[name]) != wanted[name]}
        assert set(done.deleted) == before.keys() - wanted.keys()
        kept = {name: wanted[name] for name in before if name in wanted}
        self.texts = kept | {name: wanted[name] for name in done.added}
