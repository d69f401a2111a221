"""Parse a call of `grep` or `rg`: its options, its pattern as an expression of `re`, and the file names it selects."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from monocontext.globs import Globs
from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.text.regex.linewise import Linewise
from monocontext.text.search.grep import compile_query

_COMMON = {
    "F": "fixed-strings", "P": "perl-regexp", "e:": "regexp=", "i": "ignore-case", "v": "invert-match",
    "w": "word-regexp", "x": "line-regexp", "c": "count", "l": "files-with-matches", "q": "quiet", "a": "text",
    "o": "only-matching", "n": "line-number", "H": "with-filename", "m:": "max-count=", "A:": "after-context=",
    "B:": "before-context=", "C:": "context=",
}  # fmt: skip
"""Options of grep and rg by letter, with `:` and `=` if they take a value. bashkit runs a call with any other."""
_GREP = _COMMON | {
    "E": "extended-regexp", "G": "basic-regexp", "s": "no-messages", "h": "no-filename", "r": "recursive",
    "R": "recursive", "I": "text",
}  # fmt: skip
_RG = _COMMON | {
    "S": "smart-case", "s": "case-sensitive", "N": "no-line-number", "I": "no-filename", "g:": "glob=", "t:": "type=",
}  # fmt: skip
_GREP_LONG = ("include=", "exclude=", "exclude-dir=", "line-buffered")
_RG_LONG = ("files", "hidden", "no-heading", "no-ignore")  # options without a letter, as in `_GREP_LONG`
_LAST_COUNTS = (  # of the options in each group, only the last one on the command line counts
    ("with-filename", "no-filename"), ("line-number", "no-line-number"),
    ("ignore-case", "smart-case", "case-sensitive"),
)  # fmt: skip
_SYNTAXES = {"grep": "basic-regexp", "egrep": "extended-regexp", "fgrep": "fixed-strings", "rg": "perl-regexp"}
_TYPES = {"py": "py,pyi", "js": "js,jsx,mjs,cjs", "ts": "ts,tsx,mts,cts", "md": "md,markdown", "rust": "rs",
          "c": "c,h", "cpp": "cpp,cc,cxx,hpp,hh,h", "yaml": "yaml,yml", "sh": "sh,bash,zsh"}  # fmt: skip
"""File name endings by type of `rg -t`. A type that is missing here has one ending, its own name."""
_MOST_LINES = 1 << 40  # larger numbers in options mean the same: no text has more lines
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CLASS = re.compile(r"\[:(\w+):\]")  # [:digit:]
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.", re.DOTALL)  # \. [^]a] [[:digit:]] a
_ESCAPES = {r"\<": r"\b(?=\w)", r"\>": r"\b(?<=\w)", r"\`": r"\A", r"\'": r"\Z"}  # of GNU grep, and what `re` has
_ESCAPES |= {escape: escape for escape in (rf"\{letter}" for letter in "bBwWsS123456789")}
_TWO_REPEATS = re.compile(r"[*+?}][*+?]")  # a*?, which is lazy in Python; not a*b
_NO_INTERVAL = re.compile(r"\{(?!(?:\d+(?:,\d*)?|,\d+)\})")  # {a}; not {2} {2,} {,3}


class GrepQuery:
    """The options and the pattern of a call."""

    def __init__(self, call: ShellCall) -> None:
        """Raises `LeftToShell` for a call that bashkit must run, and `ValueError` for an invalid glob."""
        self._command = call.name
        self.is_rg = call.name == "rg"
        words = (_RG, _RG_LONG) if self.is_rg else (_GREP, _GREP_LONG)
        self._options, self.operands = call.options(*words)
        self._flags = {word for word, _ in self._options}
        for group in _LAST_COUNTS:
            used = [word for word, _ in self._options if word in group]
            self._flags.difference_update(word for word in used if word != used[-1])
        self.is_recursive = self.is_rg or self.has("recursive")
        # The lines of context before a selected line and after it, and whether `--` is printed where lines are skipped.
        self.before, self.after = (self._number(f"{side}-context", "context") or 0 for side in ("before", "after"))
        has_context = self.has("context", "before-context", "after-context")
        self.has_groups = has_context and not (self.is_rg and self.before == self.after == 0)  # grep: with -C 0, too
        types = [f"*.{{{_TYPES.get(item, item)}}}" for item in self._values("type")]
        self._globs = Globs(self._values("glob") + types)
        self.most_lines = self._number("max-count")  # the most lines of a file; None for all
        names_only = self.is_rg or self.has("files-with-matches", "quiet")
        prints_no_match = self.has("only-matching") and self.has("count", "invert-match") and not names_only
        if self.has("files") or prints_no_match or self.most_lines == 0:
            raise LeftToShell
        try:
            self.pattern = self._compile()
        except re.error:
            raise LeftToShell from None
        if self.has("quiet", "files-with-matches"):
            self.most_lines = 1  # nothing of a file matters after its first line

    def has(self, *flags: str) -> bool:
        """Whether any of these options, by long name, is given and not undone by a later one."""
        return not self._flags.isdisjoint(flags)

    def _compile(self) -> Linewise:
        """The pattern of the call. Raises `LeftToShell` if there is none, `re.error` if Python cannot express it."""
        if not self.has("regexp") and not self.operands:
            raise LeftToShell
        patterns = "\n".join(self._values("regexp") or [self.operands.pop(0)]).split("\n")
        syntaxes = [word for word, _ in self._options if word in _SYNTAXES.values()]
        syntax = syntaxes[-1] if syntaxes else _SYNTAXES[self._command]
        if syntax == "fixed-strings":
            patterns = [re.escape(pattern) for pattern in patterns]
        elif syntax == "perl-regexp":
            perl = (_CLASS.sub(lambda name: _CLASSES.get(name[1], name[0]), pattern) for pattern in patterns)
            patterns = [pattern.replace(r"\h", r"[ \t]") for pattern in perl]  # Python lacks these and the classes
        else:
            patterns = [_from_posix(pattern, extended=syntax == "extended-regexp") for pattern in patterns]
        whole = "|".join(f"(?:{pattern})" for pattern in patterns) if len(patterns) > 1 else "".join(patterns)
        if self.has("line-regexp"):
            whole = f"^(?:{whole})$"
        elif self.has("word-regexp"):
            whole = rf"(?<!\w)(?:{whole})(?!\w)"
        has_capital = any(map(str.isupper, re.sub(r"\\.", "", whole)))  # not `\W`
        ignores_case = self.has("ignore-case") or (self.has("smart-case") and not has_capital)
        return compile_query(re.compile(whole, re.IGNORECASE if ignores_case else 0))

    def selects(self, path: str) -> bool:
        """Whether to search a file, given its path below the searched folder."""
        *folders, name = path.split("/")
        if self.is_rg:
            is_hidden = any(part.startswith(".") for part in (*folders, name))
            return self._globs.select(path) and (self.has("hidden") or not is_hidden)
        rules = [(option, glob) for option, glob in self._options if option in ("include", "exclude")]
        # As in GNU grep, the last match wins. Without a match, a file is searched unless the first rule is an include.
        default = "exclude" if rules and rules[0][0] == "include" else "include"
        rule = next((option for option, glob in reversed(rules) if fnmatchcase(name, glob)), default)
        return rule == "include" and not any(map(self.skips, folders))

    def skips(self, folder: str) -> bool:
        """Whether `--exclude-dir` excludes a folder, by its name."""
        name = folder.rpartition("/")[2]
        return any(fnmatchcase(name, glob.rstrip("/")) for glob in self._values("exclude-dir"))

    def _values(self, word: str) -> list[str]:
        return [value for option, value in self._options if option == word]

    def _number(self, *words: str) -> int | None:
        """The last value of the first of these options that is given; None if none is. Raises `LeftToShell`."""
        values = next(filter(None, map(self._values, words)), None)
        if values and not values[-1].isdecimal():
            raise LeftToShell  # such as `-C x`, for its message
        return min(int(values[-1]), _MOST_LINES) if values else None


def _from_posix(pattern: str, *, extended: bool) -> str:
    r"""Translate a pattern of `grep` (`a\|b`) or, if `extended`, of `grep -E` (`a|b`) for `re`. Raises `re.error`."""
    tokens = _TOKEN.findall(pattern)
    operators = [_operator(token, extended=extended) for token in tokens]
    shape = "".join(operator or token.strip("{}") for operator, token in zip(operators, tokens, strict=True))
    is_foreign = tokens[-1:] == ["\\"] or "[" in tokens or _TWO_REPEATS.search(shape)
    if is_foreign or (not extended and _NO_INTERVAL.search(shape)):
        raise re.error("no pattern of Python is equivalent")
    parts = []
    padded = ["|", *operators, "|"]
    for token, before, operator, after in zip(tokens, padded, operators, padded[2:], strict=False):
        # In a basic pattern, `^` and `$` are operators only at the ends of an alternative.
        is_inside = before not in ("(", "|") if operator == "^" else after not in (")", "|")
        is_character = not extended and operator in ("^", "$") and is_inside
        if operator and not is_character:
            parts.append(operator)
        elif token[0] == "[":
            parts.append(_bracket(token))
        else:
            parts.append(_ESCAPES.get(token) or re.escape(token[-1]))
    return "".join(parts)


def _operator(token: str, *, extended: bool) -> str:
    """The operator of `re` that a token stands for; empty if the token is a character or a set."""
    if token in ("*", "^", "$", "."):
        return token
    is_operator = token[-1] in "(){}|+?" and len(token) == (1 if extended else 2) and token[0] in (token[-1], "\\")
    return token[-1] if is_operator else ""


def _bracket(token: str) -> str:
    r"""A bracket expression of POSIX, where `\` is a character, as a set of `re`. Raises `re.error`."""
    body = token[1:-1]
    if not _CLASSES.keys() >= set(_CLASS.findall(body)):
        raise re.error("unknown character class")
    negated = "^" if body.startswith("^") else ""
    parts = _CLASS.split(body.removeprefix("^"))
    parts[::2] = [re.sub(r"([\\\[\]&~|^])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [_CLASSES[name] for name in parts[1::2]]
    return f"[{negated}{''.join(parts)}]"
