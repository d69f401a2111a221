"""Open the texts that a server offers by name: contexts, sessions and a memory. Clients give names, never URLs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from cachetools import LRUCache

from monocontext.errors import NotAContext, NotFound, ToolRefusal
from monocontext.options import StoreOptions
from monocontext.stores import open_store, options_for
from monocontext.text.from_str import wrap_str
from monocontext.text.monocontext import Monocontext
from monocontext.text_tools.keep import KEPT, KeepTool
from monocontext.text_tools.shell import Shell, folder_of

if TYPE_CHECKING:
    from monocontext.memory.memory import Memory
    from monocontext.sessions.archive import Sessions

_CACHE_BYTES = 64 << 20  # the most decoded text that each open context keeps in memory
_MOST_OPEN = 16  # contexts that stay open at once
MEMORY = "memory"
SESSIONS_PREFIX = "sessions/"
_MANIFEST = "/manifest.json"


class Served:
    """The texts of a server. Safe for use by many threads.

    - `contexts`: URLs by name. A URL without a context is a folder, in which `name/below` is a context
    - `sessions`: the sessions of a project are the text `sessions/PROJECT`, one of them is `sessions/PROJECT/ID`
    - `memory`: its values are the text `memory`, one of them is `memory/KEY`
    - `kept`: the texts that agents keep are the text `kept`
    - `shell`: offer a shell over all texts but the memory
    - `allow`, `store_options`: options of `Monocontext.open` for all contexts; the latter only for those on S3
    """

    def __init__(
        self,
        contexts: Mapping[str, str] | None = None,
        *,
        sessions: Sessions | None = None,
        memory: Memory | None = None,
        kept: KeepTool | None = None,
        shell: bool = False,
        allow: Sequence[str] = (),
        store_options: StoreOptions | None = None,
    ) -> None:
        self.contexts = dict(contexts or {})
        self.sessions = sessions
        self.memory = memory
        self.kept = kept
        self.has_shell = shell
        self.has_texts = bool(self.contexts) or sessions is not None or memory is not None
        self._shell: Shell | None = None
        self._allow = tuple(allow)
        self._store_options: StoreOptions = store_options or {}
        self._open: LRUCache[str, Monocontext] = LRUCache(_MOST_OPEN)
        self._lock, self._shell_lock = threading.Lock(), threading.Lock()

    def names(self) -> Iterator[str]:
        """Yield the names of contexts, including those in folders, then of projects, of what is kept, and of the memory
        (1 GET per context, 1 LIST per 1,000 objects of a folder)."""
        for name in sorted(self.contexts):
            try:
                self.context(name)
                yield name
            except (NotAContext, NotFound):
                yield from self._names_below(name)
        if self.sessions is not None:
            yield from (SESSIONS_PREFIX + project for project in self.sessions.projects())
        if self.kept is not None:
            yield KEPT.removeprefix("/")
        if self.memory is not None:
            yield MEMORY

    def has_name(self, name: str) -> bool:
        """Whether a name is that of a text of this server, or begins with one and a slash (no request)."""
        first, slash, _ = name.strip("/").partition("/")
        if first == SESSIONS_PREFIX.strip("/"):
            return first in self.contexts or (self.sessions is not None and slash != "")
        source = {MEMORY: self.memory, KEPT.strip("/"): self.kept}.get(first)
        return first in self.contexts or source is not None

    def only_name(self) -> str:
        """The name of the only text, for a call without a name (same requests as the first two `names`).

        Raises `ToolRefusal` if there are several texts, or none.
        """
        names = list(islice(self.names(), 2))
        if len(names) != 1:
            urls = " or ".join(self.contexts.values()) or "any URL of this server"
            raise ToolRefusal("name a context: context_list lists them" if names else f"no text is stored at {urls}")
        return names[0]

    def context(self, name: str, *, fresh: bool = False) -> Monocontext:
        """The text with a name, in the version that is open; with `fresh`, in the newest version.

        Costs 1 GET, none for an open text; for sessions and a memory that of their `context`. Raises `NotFound`.
        """
        if self.kept is not None and name.strip("/") == KEPT.removeprefix("/"):
            return self.kept.text()
        if self.memory is None or not name.startswith(MEMORY + "/"):  # slashes belong to a key
            name = name.strip("/")
        with self._lock:
            opened = self._open.get(name)
        if opened is not None and not fresh:
            return opened
        opened = self._open_text(name)
        with self._lock:
            self._open[name] = opened
        return opened

    def shell(self) -> Shell:
        """The shell over the texts that existed at the first call (same requests as `names`)."""
        with self._shell_lock:
            if self._shell is None:
                texts: dict[str, Callable[[], Monocontext]] = {}
                for name in self.names():
                    if name != MEMORY:
                        folder = KEPT if f"/{name}" == KEPT else folder_of(name, texts)
                        texts[folder] = partial(self.context, name)
                self._shell = Shell(texts)
            return self._shell

    def _open_text(self, name: str) -> Monocontext:
        if self.memory is not None and name == MEMORY:
            return self.memory.context(cache_bytes=_CACHE_BYTES)
        if self.memory is not None and name.startswith(MEMORY + "/"):
            return wrap_str(self.memory[name.removeprefix(MEMORY + "/")])
        if self.sessions is not None and name.startswith(SESSIONS_PREFIX):
            project, _, session = name.removeprefix(SESSIONS_PREFIX).partition("/")
            wanted = [session] if session else None  # None: all sessions of the project
            return self.sessions.project(project).context(sessions=wanted, cache_bytes=_CACHE_BYTES)
        bases = [base for base in self.contexts if f"{name}/".startswith(f"{base}/")]
        base = max(bases, key=len, default="")
        path = name.removeprefix(base).strip("/")
        if not base or ".." in path.split("/"):
            raise NotFound(f"no context {name!r} is served here: context_list lists them")
        url = self.contexts[base].rstrip("/")
        location, options = f"{url}/{path}" if path else url, options_for(url, self._store_options)
        opened: Monocontext = Monocontext.open(location, cache_bytes=_CACHE_BYTES, allow=self._allow, **options)
        return opened

    def _names_below(self, name: str) -> Iterator[str]:
        url = self.contexts[name]
        with closing(open_store(url, **options_for(url, self._store_options))) as store:
            keys = (info.key for info in store.list() if info.key.endswith(_MANIFEST))
            yield from (f"{name}/{key.removesuffix(_MANIFEST)}" for key in keys)

    def close(self) -> None:
        """Close all open contexts and the shell. Idempotent."""
        if self._shell is not None:
            self._shell.close()
        with self._lock:
            contexts = [self._open.popitem()[1] for _ in range(len(self._open))]
        for context in contexts:
            context.close()
