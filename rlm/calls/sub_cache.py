"""Keep the answers to sub-calls between runs, so that repeating a call costs nothing."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from rlm.models.lm import Reply


class SubCache:
    """A cache of replies by key, in memory or as small JSON files in a directory. Safe for many threads and processes.

    Replies are stored as plain text, so protect the directory. Prompts are not stored.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        """`directory`: where the files are stored, made for the first of them; None for a cache in memory."""
        self._directory = None if directory is None else Path(directory)
        self._memory: dict[str, tuple[str, str]] = {}

    def get(self, key: str) -> Reply | None:
        """The reply stored under `key`, which costs nothing; None if there is none, or if its file is damaged."""
        try:
            if self._directory is None:
                text, model = self._memory[key]
            else:
                text, model = json.loads((self._directory / key[:2] / f"{key}.json").read_text("utf-8"))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return Reply(text, 0, 0, model, dollars=0.0, cached=True)

    def put(self, key: str, reply: Reply) -> None:
        """Store `reply` under `key`. Its file appears whole or not at all. Raises OSError, as for a full disk."""
        if self._directory is None:
            self._memory[key] = reply.text, reply.model
            return
        file = self._directory / key[:2] / f"{key}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        draft.write_text(json.dumps([reply.text, reply.model]), "utf-8")
        draft.replace(file)
