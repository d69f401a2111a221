"""The commands `search` and `cite`: print the passages that match words best, or a passage that an answer cites."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated

import click

from monocontext.cli.options import S3, Allow, AsJson, checked_options, folder_prefix
from monocontext.cli.parameters import AT_LEAST_1, NOT_NEGATIVE, Argument, Option, is_location, make_command
from monocontext.cli.printing import print_error, print_line, print_note, write_text
from monocontext.cli.reading import Url
from monocontext.errors import MonocontextError
from monocontext.text.monocontext import Monocontext
from monocontext.text.search.passages import Passage
from monocontext.text.search.ranked import search as rank

_SOURCE = re.compile(r"(\d{1,18})-(\d{1,18})(?:@(\d{1,18}))?(?:#([0-9a-f]{8,64}))?")  # 120-180@3#1a2b3c4d
_MOST_CITED = 1_000_000  # the longest source that `cite` reads, in characters; `rlm.trajectory.source` has it too


def _search(
    words: Annotated[
        list[str],
        Argument(metavar="WORDS URL", help="As in '\"must occur\" matters -must-not doc:GLOB'; then the URL."),
    ],
    s3: S3,
    most: Annotated[int, Option("--max-count", "-m", type=AT_LEAST_1, help="Print at most this many passages.")] = 10,
    max_bytes: Annotated[int | None, Option(type=AT_LEAST_1, help="Most bytes to read; by default 64 MiB.")] = None,
    max_seconds: Annotated[float | None, Option(type=NOT_NEGATIVE, help="Search at most this long.")] = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the passages that match WORDS best, the best first, reading as little as search filters allow.

    Exits with 0 if there is a passage, 1 if there is none, 2 on errors. With --json, prints an object for each passage:
    `start` and `stop` in characters, `line` of the whole text, `document`, `document_line`, `score`, `text`.
    """
    if len(words) < 2:
        raise click.BadParameter(f"expected WORDS and a URL, got only {words[0]!r}")
    query, url = _split_url(words)
    with Monocontext.open(url, allow=allow or (), **checked_options(url, s3)) as context:
        try:
            passages = rank(
                context.span, " ".join(query), most, max_bytes=max_bytes, max_seconds=max_seconds,
                documents=context.documents, between=False,
            )  # fmt: skip
        except ValueError as error:
            raise MonocontextError(str(error)) from None
    for passage in passages:
        if as_json:
            print(json.dumps(passage._asdict() | {"document_line": passage.document_line}))
        else:
            _print_passage(passage, url)
    if passages.note:
        print_error("monocontext", passages.note)
    elif not passages:
        print_note("no passage matches these words")
    if not passages:
        raise click.exceptions.Exit(1)


def _print_passage(passage: Passage, url: str) -> None:
    location = passage.place if passage.document is None else (folder_prefix(url) or "") + passage.place
    print_line(f"{location} ({passage.score:.1f}, characters {passage.start} to {passage.stop})")
    for line in passage.text.rstrip("\n").split("\n"):
        print_line(f"    {line}")


class _SearchCommand(click.Command):
    """A command that takes `-word` for a word that must not occur, rather than for the options `-w -o -r -d`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # click takes no word that begins with a space for an option, and the query ignores the space.
        return super().parse_args(ctx, [re.sub(r"^-(?=[^\W\d_]{2})", " -", word) for word in args])


search = make_command(_search, "search", kind=_SearchCommand)


def _split_url(words: list[str]) -> tuple[list[str], str]:
    """The words, and the URL, which is the first or last of them. Raises `click.BadParameter` if both may be a URL."""
    excluded = [word for word in words if word.startswith(" -")]
    others = [word for word in words if word not in excluded]
    if not others:
        raise click.BadParameter("expected a URL before or after the words, got only words that must not occur")
    first, last = others[0], others[-1]
    first_rank, last_rank = (2 if "://" in word else int(is_location(word)) for word in (first, last))  # 1 for a path
    if len(others) > 1 and first_rank == last_rank > 0:
        raise click.BadParameter(
            f"which is the text, {first!r} or {last!r}? Write a word that is also a path as a phrase: '\"{last}\"'"
        )
    query, url = (others[1:], first) if first_rank > last_rank else (others[:-1], last)
    return query + excluded, url


def cite(
    url: Url,
    source: Annotated[str, Argument(metavar="SOURCE", help="As an answer cites it: START-STOP@GENERATION#CHECKSUM.")],
    s3: S3,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the passage that an answer cites as SOURCE.

    Fails if the newest version of URL has another text there. Without #CHECKSUM, only the length is compared.
    """
    match = _SOURCE.fullmatch(source)
    start, stop = (int(match[1]), int(match[2])) if match else (0, 0)
    if not match or not 0 < stop - start <= _MOST_CITED:
        raise MonocontextError(
            f"not a source: {source!r}; a source is START-STOP with START below STOP, optionally with @GENERATION and "
            f"#CHECKSUM, and spans at most {_MOST_CITED:,} characters"
        )
    with Monocontext.open(url, allow=allow or (), **checked_options(url, s3)) as context:
        text = str(context[start:stop])
        line = len(context.view(0, start + 1).lines)
        generation = context.generation
    is_unchanged = _is_unchanged(text, match, generation)
    if as_json:
        print(json.dumps({
            "stands": is_unchanged, "start": start, "stop": stop, "line": line, "sha256": _sha256(text), "text": text,
            "cited_generation": int(match[3]) if match[3] else None, "generation": generation,
        }))  # fmt: skip
    else:
        write_text(text if text.endswith("\n") else text + "\n")
    if is_unchanged is None:
        print_note("the source has no checksum, so the text may differ from what was cited")
    if is_unchanged is False:
        place = f"{url}: characters {start} to {stop} (line {line})"
        raise MonocontextError(f"{place} differ from the cited text: the context has changed, or is not the cited one")


def _is_unchanged(text: str, source: re.Match[str], generation: int | None) -> bool | None:
    """Whether a text is what a source cites; None if the source has no checksum and does not name `generation`."""
    start, stop, cited_generation, checksum = source.groups()
    if len(text) != int(stop) - int(start):
        return False
    if checksum:
        return _sha256(text).startswith(checksum)
    return True if cited_generation == str(generation) else None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
