"""`grep`, `search` and `outline` of a text: the methods with which code looks before it reads."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from monocontext.options import check_int, check_seconds, validate_options
from monocontext.text.str_methods import StrLike

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from monocontext.text.documents.by_name import Documents
    from monocontext.text.search.grep import Query
    from monocontext.text.search.hits import GrepHits
    from monocontext.text.search.outline import Outline
    from monocontext.text.search.passages import Passages


class Searchable(StrLike):
    """A text with methods that search, over its span and its documents."""

    __slots__ = ()

    @property
    @abstractmethod
    def _own_documents(self) -> Documents[Any] | None:
        """The documents, if this is a whole text that has some; else None."""

    @validate_options()
    def grep(
        self,
        pattern: Query,
        *,
        ignore_case: bool = False,
        fixed: bool = False,
        max_hits: int | None = None,
        start: int | None = None,
        stop: int | None = None,
        executor: Executor | None = None,
    ) -> GrepHits:
        r"""The lines that a pattern matches, in order: `Hit(offset, line_number, line)` for each; streams.

        The result is an iterator that finds each hit once, on demand. `print` shows the first 20 and keeps them in it.

        - `pattern`: a regular expression, a pattern compiled by `re` or `monocontext.regex`, or a list of these, any of
          which may match
        - `fixed`: the pattern is literal text
        - `max_hits`: the most hits
        - `start`, `stop`: only lines that begin at characters [start, stop)
        - `executor`: any `concurrent.futures.Executor`; its workers search parts of the text

        Each line is searched by itself, without its `\n`, as in `grep`. A pattern that needs a newline raises
        `ValueError`. `offset` is the character at which the first match in the line begins, `line_number` counts from
        1, `line` has no `\n`.

        GETs: the blocks of search filters (up to 16 for a literal and 16 GiB of text, at once), then 1 for about 8 MiB
        stored of frames in which a match may begin, and 1 for the rest of a line that reaches into other frames. Where
        no filter applies, all frames are read.

        Raises `ContextTooLarge` for a hit in a line of more than `materialize_limit` characters, or a pattern that
        needs more of a line at once. For offsets that count from `a`, search `context.view(a, b)`.
        """
        from monocontext.text.search.grep import compile_query, grep
        from monocontext.text.search.hits import GrepHits

        linewise = compile_query(pattern, ignore_case=ignore_case, fixed=fixed)
        if max_hits is not None:
            max_hits = check_int("max_hits", max_hits, 0)
        first, end = 0, None  # None is the end of the text
        if start is not None or stop is not None:
            first, last, _ = slice(start, stop).indices(len(self))
            end = max(first, last) if last < len(self) else None
        if executor is not None:
            from monocontext.text.search.grep_parallel import grep_parts

            hits = grep_parts(self, linewise, first, end, max_hits, executor)
        else:
            hits = grep(self.span, linewise, limit=self._limit, first=first, stop=end, max_hits=max_hits)
        return GrepHits(hits, self._own_documents)

    @validate_options()
    def search(
        self,
        query: str,
        *,
        k: int = 10,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        per_document: bool = False,
    ) -> Passages:
        """The passages that best match some words, best first: `Passage(start, stop, line, document, score, text)`.

        - `query`: words in any order and form; `"a phrase"` that a passage must have; `-word` that it must not have;
          `doc:src/*.py` for passages of documents with such names
        - `k`: the most passages
        - `max_bytes`, `max_seconds`: the most text to read (64 MiB by default), and the longest time (no limit by
          default); the result's `note` says what was left unread
        - `per_document`: rank documents, each by its best passage

        A passage is the whole lines that fit into 640 characters, or that many characters of a longer line. BM25 gives
        its score, with a bonus for words that are near each other. The result is deterministic; where `note` is empty,
        no other passage of the text scores more.

        Case does not count. Accents do: `resume` does not find `résumé`, though `résumé` also finds `resume`.

        GETs: the rows of the filters in 1 to 3 waves, then frames that may hold the words, best first, in waves of 7
        MB; without filters the text from its beginning. With documents, 1 more for each 4,096 that are looked up.

        Raises `ValueError` for a query without a word to look for.
        """
        from monocontext.text.search.ranked import search

        k = check_int("k", k, 1)
        if max_bytes is not None:
            max_bytes = check_int("max_bytes", max_bytes, 0)
        check_seconds("max_seconds", max_seconds)
        passages = search(
            self.span,
            query,
            k,
            max_bytes=max_bytes,
            max_seconds=max_seconds,
            documents=self._own_documents,
            per_document=per_document,
        )
        for passage in passages:
            self.span.log_received(passage.start, passage.stop)
        return passages

    def outline(self) -> Outline:
        """Describe this text: its size, its documents, and headings, definitions, turns or log lines from its head, its
        tail and five frames between. Prints as at most 58 lines.

        GETs: at most 16 for a text of any size: these frames, their index pages, and a page of documents. A text
        derived from another (`lower`, `replace`) has no documents, and line numbers only near its beginning.
        """
        from monocontext.text.search.outline import outline

        return outline(self.span, self._own_documents)
