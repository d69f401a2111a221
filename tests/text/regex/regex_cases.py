"""Patterns shaped like those that models write over a context, and texts in which they match and nearly match."""

from __future__ import annotations

import random
import re

PATTERNS = [
    # words, spaces, lines
    r"\s+", r"\w+", r"\d+", r"\S+", r"\n+", r"\n\n+", r"\r?\n", r"[^\n]+", r"\b\w+\b", r"\b[A-Z]\w*\b", r"\B\w",
    r".*", r".+", r".*?", r"x*", r"", r"\b", r"^", r"$", r"\Z", r"\A", r"^.*$", r"^\s*$", r"(?m)^", r"(?m)$", r"^\w+",
    r"\w+$", r"\s+$", r"(?m)^\s+", r"(?m)^ERROR.*$", r"(?m)^(\w+):\s*(.*)$", r"(?m)^\s*#.*\n?", r"(?m)\n^",
    # a word and what is around it
    r"error", r"(?i)error", r"ERROR (\w+)", r"\bdisk\b", r"(?i)\bdisk\b", r".{0,30}disk.{0,30}", r".{0,5}error.{0,5}",
    r"(?i).{0,40}(?:error|fail).{0,40}", r"[^.\n]*disk[^.\n]*\.", r"\w*disk\w*", r"(?s).{0,20}label.{0,20}",
    r"error|fail|disk", r"(?:error|ERROR|Error)\s+\d+", r"(error)|(disk)|(\d+)", r"dis[kc]", r"ERR(?:OR)?", r"err.r",
    # labels and values
    r"label:\s*(.+)", r"label:\s*(\S+)", r"label:\s*(.*?)\n", r"label:[ \t]*([^\n]*)", r"(?i)label\s*[:=]\s*(\w+)",
    r"(?P<key>\w+)\s*=\s*(?P<value>[^\s,;]+)", r"(\w+):\s*(\d+)", r'"(\w+)":\s*"([^"]*)"', r"'[^']*'", r'"[^"]+"',
    r"\$\d+(?:\.\d\d)?", r"\d+ ms", r"\d{1,3}(?:,\d{3})*", r"\d{4}-\d{2}-\d{2}", r"\d+\.\d+", r"[-+]?\d+",
    # brackets
    r"(?s)Graph:\s*(\[.*?\])", r"\([^)]+\)", r"\[[^\]]*\]", r"\[(.*?)\]", r"(?s)\{.*?\}", r"(?s)\{.*\}", r"<[^>]+>",
    r"(?s)<(\w+)>(.*?)</\1>", r"(?s)start(.*?)end", r"(?s)start.*end", r"(?s)```(\w*)\n(.*?)```", r"\(\(+",
    # look-around
    r"(?s)label(.*?)(?=\n\n|$)", r"(?s)label(.*?)(?=\n\n|\Z)", r"\w+(?=:)", r"(?<=: )\w+", r"(?<!\w)disk(?!\w)",
    r"(?=(\w+))", r"(?!\s)\S+(?<!\d)", r"(?<=\n)\w+", r"(?m)(?<=^)\w", r"(?s)error(?!.*error)", r"(?=.*disk)error",
    r"(?<=a)b|c(?=d)", r"(?!a+b)a", r"(?=\s*\w+\s*=)\s", r"\d(?=(?:\d{3})+\b)",
    # e-mail, addresses, names
    r"[\w.+-]+@[\w-]+\.[\w.-]+", r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b", r"https?://\S+",
    r"host-(\d+) INFO", r"\d+\.\d+\.\d+\.\d+", r"([A-Z][a-z]+)\s+([A-Z][a-z]+)", r"(?:[A-Z]\w+\s*){2,}", r"@\w+",
    # references, conditions, repeats of every kind
    r"(\w)\1", r"(\w+)\s+\1", r"(a)?b(?(1)c|d)", r"(?i)(\w)\1", r"(a+)(b+)?", r"(?:ab)+", r"(?:a|b)*?c",
    r"(a|ab)(c|bcd)*",
    r"a*+b", r"(?>a+)b?", r"(?>a|ab)c", r"a{2,3}?", r"a{3,}", r"(?:\w+\s)+\d", r"(?:(a)|b)*", r"(a*)*", r"(?:a*?)+b",
    r"(?:\s*\w+\s*,)+", r"(\s*)(\w*)(\s*)", r"\w+?\b", r"(?:\n|.)+?disk", r"(?s:.)*?b", r"(?i:ERR)or",
    r"(?x) \d + \s ms",
    r"(?a)\w+", r"[^\W\d_]+", r"[\u0370-\u03ff]+", r"(?i)k+", r"(?i)s{2}", r"(?i)[a-z]+", r"é+", r"\W{3,}",
]  # fmt: skip

FLAGS = [0, re.I, re.M, re.S, re.M | re.S, re.I | re.S, re.I | re.M | re.S, re.A, re.A | re.I]

PIECES = [
    "ERROR", "error", "Error", "disk", "disc", "disks", "label:", "label", "Label =", "Graph:", "[1, 2]", "[", "]",
    "(a b)", "((", ")", "{", "}", "<b>", "</b>", "<i>", "start", "end", "```py\n", "```", "host-12 INFO", "host-", "12",
    "7", "1,234,567", "2024-01-31", "3.14", "10.0.0.1", "15 ms", "$5.00", "bob@ex.org", "a.b+c@d-e.co.uk", "@", "http://x/y",
    "John Smith", "Ann", '"k": "v"', '"', "'", "key=val", "#", ":", ": ", "=", ",", ";", ".", "_", "-", "fail",
    "a", "aa", "aaa", "ab", "b", "c", "cd", "bcd", "abab", "x", "xx",
    " ", " ", " ", "  ", "\t", "\n", "\n", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028",
    "\xa0", "\u3000",
    "é", "éé", "ſ", "\u212a", "K", "k", "İ", "ı", "i", "ß", "Σ", "ς", "σ", "αβγ", "٣", "e\u0301", "😀",
    "👩\u200d💻", "\u200d", "ǅ",
]  # fmt: skip


def text(seed: int, pieces: int) -> str:
    """A text of this many pieces, always the same for a seed. Some are ASCII only, some made of a few pieces."""
    rng = random.Random(seed)
    choice = PIECES
    if seed % 3 == 0:
        choice = [piece for piece in choice if piece.isascii()]
    if seed % 4 == 1:
        choice = rng.sample(choice, 6)
    return "".join(rng.choices(choice, k=pieces))
