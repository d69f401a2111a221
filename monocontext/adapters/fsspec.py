"""Read texts as files by fsspec, and so by every library that uses it.

    fsspec.open("monocontext://text::s3://bucket/prefix")

The path `text`, with any suffix or none, is the whole text, unless a document has that name. Every other path is the
document of that name, which may begin with a slash. Files are in UTF-8. A filesystem stays on the generation that it
opened, in other processes too; `invalidate_cache()` moves it to the newest one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any, NoReturn

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem, make_instance

from monocontext.adapters.text_bytes import TextBytes
from monocontext.text.monocontext import Monocontext

_WHOLE = "text"  # the path of the whole text


class MonocontextFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The documents of one context as files, read-only. Safe for use by many threads."""

    protocol = "monocontext"

    def __init__(
        self,
        fo: str = "",
        target_protocol: str | None = None,
        target_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Open the context at the URL `fo` (1 GET). `target_options`: options of `Monocontext.open`.

        In a chain of URLs, pass them by the name of the last protocol, as in `s3={"endpoint": ...}`: fsspec then also
        imports its own module for that protocol, such as `s3fs`.
        """
        super().__init__(**options)
        if not fo:
            raise ValueError(
                "the URL of the text is missing: pass monocontext://text::s3://bucket/prefix, or fo='s3://bucket/...'"
            )
        url = f"{target_protocol}://{fo.lstrip('/')}" if target_protocol not in (None, "file", "local") else fo
        arguments: Any = target_options or {}
        self._text: Monocontext = Monocontext.open(url, **arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        options = dict(self.storage_options)
        options["target_options"] = {**(options.get("target_options") or {}), "generation": self._text.generation}
        return make_instance, (type(self), self.storage_args, options)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Move to the newest generation (1 GET). Files that are open stay on theirs."""
        self._text.refresh()

    def close(self) -> None:
        """Release memory and connections. Idempotent."""
        self._text.close()

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The files in a folder (1 GET per 4,096 documents). The sizes of documents are None; `info` has them."""
        path = str(self._strip_protocol(path)).strip("/")
        below = f"{path}/" if path else ""
        results: dict[str, dict[str, Any]] = {}
        if not path and _WHOLE not in self._documents:
            results[_WHOLE] = self.info(_WHOLE)
        for name in (name.lstrip("/") for name in self._documents):
            if name == path:
                results[name] = self.info(name)
            elif name.startswith(below):
                first, *deeper = name[len(below) :].split("/")
                kind = {"size": 0, "type": "directory"} if deeper else {"size": None, "type": "file"}
                if not deeper or below + first not in results:
                    results[below + first] = {"name": below + first, **kind}
        if path and not results:
            results[path] = self.info(path)
        return [results[name] for name in sorted(results)] if detail else sorted(results)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """The size in bytes and the generation of a file (at most 2 GETs, for the frames at its ends)."""
        path = str(self._strip_protocol(path)).strip("/")
        is_file = path in self._documents or f"/{path}" in self._documents
        if not path or (not is_file and any(name.lstrip("/").startswith(f"{path}/") for name in self._documents)):
            return {"name": path, "size": 0, "type": "directory"}
        info = {"name": path, "size": len(TextBytes(self._find(path))), "type": "file"}
        return info | {"url": self._text.url, "generation": self._text.generation}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Bytes [start, end) of a file, with the bounds of a slice."""
        content = TextBytes(self._find(str(self._strip_protocol(path))))
        first, stop, _step = slice(start, end).indices(len(content))
        return content.read(first, stop)

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **options: Any) -> _File:
        if mode != "rb":
            self._refuse(path)
        options = {name: options[name] for name in ("cache_type", "cache_options") if name in options}
        return _File(self, path, TextBytes(self._find(path)), block_size or "default", **options)

    def _refuse(self, path: str, *_: Any, **__: Any) -> NoReturn:
        raise OSError(errno.EROFS, f"{os.strerror(errno.EROFS)}: write texts with monocontext.publish", path)

    # The inherited mkdir and similar methods silently do nothing. All other writers call these or `open`.
    mkdir = makedirs = rmdir = rm_file = _refuse

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        self._refuse(path2)

    @property
    def _documents(self) -> Mapping[str, Monocontext]:
        return self._text.documents

    def _find(self, path: str) -> Monocontext:
        for name in (path, path.lstrip("/"), f"/{path}"):
            if name in self._documents:
                return self._documents[name]
        if path == _WHOLE or ("/" not in path and path.startswith(_WHOLE + ".")):
            return self._text._snapshot
        raise FileNotFoundError(errno.ENOENT, f"no document of this name in {self._text.url}", path)


class _File(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is open for reading."""

    def __init__(self, fs: Any, path: str, content: TextBytes, block_size: Any, **options: Any) -> None:
        self._content = content
        super().__init__(fs, path, "rb", block_size, size=len(content), **options)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._content.read(start, min(end, len(self._content)))
