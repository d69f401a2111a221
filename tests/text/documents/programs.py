"""Random statements over a lazy list or dict of documents and over the real one: the same values, or errors."""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from monocontext.errors import ContextTooLarge
from monocontext.text.lazy_kinds import LazyItems, LazyMapping, LazyText

WORDS = (
    "alpha",
    "needle in",
    "é漢",
    "😀",
    "\n",
    "\r\n",
    "line\n",
    "ΣΑΣ",
    "İ",
    "x" * 30,
    "0123456789",
    " ",
    "a",
    "B\u2028",
)
PATTERNS = (r"needle", r"(a+)l", r"^line$", r"\d{3}", r"(?i)B", r"é.", r"\s\w", r"$", r"zzz")

# What is asked of one item: `d` is a document.
TESTS = (
    "{w!r} in d", "{w!r} not in d", "len(d) > {n}", "d.startswith({w!r})", "d.endswith({w!r})", "re.search({p!r}, d)",
    "d.find({w!r}) >= 0", "d == {v!r}", "d != {v!r}", "d.lower().count('e')", "d", "not d", "d < {v!r}", "{v!r} <= d",
    "{w!r} in d.upper()", "d.count({w!r}) == 1", "{w!r} in d and {x!r} in d", "any(w in d for w in ({w!r}, {x!r}))",
    "re.match({p!r}, d)", "d.isascii()", "len(d.splitlines()) == {n}", "isinstance(d, str)",
)  # fmt: skip
VALUES = (
    "len(d)", "d", "d.upper()", "d.lower()", "d[:{n}]", "d[-{n}:]", "d[::2]", "d[{n}]", "d.split()[:3]",
    "d.splitlines()[:2]", "d.strip()", "d.replace('a', {w!r})", "d + {w!r}", "{w!r} + d", "d * 2", "f'{{d}}'",
    "f'{{d:.5}}'", "d.count('e')", "d.encode()", "d.partition(' ')", "json.dumps(d)", "json.loads(json.dumps(d))",
    "{{d: 1}}", "list(d)[:4]", "d.title()", "sorted(d)[:3]", "re.findall({p!r}, d)", "re.sub({p!r}, '-', d)",
    "type(d) is str", "str(d)", "repr(d)", "d.casefold()", "d.zfill({n})", "d.center({n})", "d.index('e')",
    "' '.join([d, 'x'])", "d.join(['a', 'b'])", "d in 'abc'", "'%s' % (d,)", "d.isalpha()",
    "d.translate({{101: 'E'}})", "bool(d)", "d.removeprefix('a')", "d.rfind('e', 2)", "(d, len(d))", "d[1:3] + d[:1]",
    "hash(d) == hash(str(d))", "d.find({w!r}, {n})", "min(d, default='')", "d[len(d) // 2:]", "d.rsplit(None, 1)",
    "d.expandtabs(3)", "[c for c in d][:3]", "len(d.encode())", "d + d", "(d + d).count({w!r})", "d.swapcase()",
)  # fmt: skip

LISTS = (
    "len(xs)", "xs[{i}]", "xs[{i}:{j}]", "xs[{i}:{j}:{k}]", "xs[::-1][:{n}]", "{v!r} in xs", "xs.index({v!r})",
    "xs.count({v!r})", "xs + [{v!r}]", "[{v!r}] + xs", "xs * 2", "xs == list(xs)", "xs == [{v!r}]", "xs != xs[:1]",
    "xs == xs[:]", "[*xs][{i}]", "list(reversed(xs))[:{n}]", "sorted(xs)[:{n}]", "sorted(xs, key=len)",
    "max(xs, key=len)", "min(xs, key=len)", "min(xs)", "sum(len(d) for d in xs)", "list(enumerate(xs))[{i}:]",
    "list(zip(xs, xs[1:]))", "list(zip(xs, range({n})))", "set(xs)", "len(set(xs))", "dict(enumerate(xs))",
    "[(i, j) for i, a in enumerate(xs) for j, b in enumerate(xs) if a == b and i < j]", "json.dumps(xs[:{n}])",
    "json.dumps(xs)", "json.dumps({{'a': xs[:2]}})", "isinstance(xs, list)", "type(xs) is list", "xs.copy()",
    "random.Random({n}).sample(xs, min({n}, len(xs)))", "''.join(xs)", "' '.join(xs[:{n}])", "next(iter(xs))",
    "list(itertools.islice(xs, {n}))", "collections.Counter(d[:1] for d in xs)", "list(filter(None, xs))",
    "list(map(len, xs))", "list(map(str.upper, xs))", "[d for d in xs if d in xs[:2]]", "bool(xs)", "xs[{i}].upper()",
    "[a for a in xs for b in xs[:2] if a in b]", "random.Random({n}).choice(xs)", "xs.index({v!r}, {n})", "str(xs[:2])",
    "[xs[i] for i in range(0, len(xs), {n} + 1)]", "list(range(len(xs)))[{i}]", "xs[len(xs)]", "xs['a']", "xs < [{v!r}]",
    "functools.reduce(lambda a, b: a + len(b), xs, 0)", "any({w!r} in d for d in xs)", "all(d for d in xs)",
    "[d for i, d in enumerate(xs) if i % 3 == 1]", "{{len(d) for d in xs}}", "sorted(map(len, xs))", "(lambda a, *b: a)(*xs)",
    "[i for i, d in enumerate(xs) if {w!r} in d] + [i for i, d in enumerate(xs) if {w!r} in d]", "xs.append(1)", "xs.sort()",
)  # fmt: skip
DICTS = (
    "len(xs)", "xs[{name!r}]", "xs.get({name!r})", "xs.get({name!r}, {n})", "{name!r} in xs", "list(xs)[:{n}]",
    "list(xs.keys())", "list(xs.values())[{i}:]", "list(xs.items())[:{n}]", "xs == dict(xs)", "xs == dict(xs.items())",
    "xs != {{}}", "xs | {{'new': {v!r}}}", "{{'new': {v!r}}} | xs", "{{k: len(t) for k, t in xs.items()}}", "set(xs)",
    "sorted(xs)", "sorted(xs, key=lambda k: len(xs[k]))", "max(xs, key=lambda k: len(xs[k]))", "isinstance(xs, dict)",
    "type(xs) is dict", "json.dumps(xs)", "json.dumps(dict(list(xs.items())[:{n}]))", "xs.copy()", "dict(xs)",
    "{v!r} in xs.values()", "({name!r}, {v!r}) in xs.items()", "xs.keys() & {{{name!r}, 'x'}}", "list(reversed(xs))",
    "[k for k in xs if {w!r} in xs[k]]", "len(xs.values())", "sum(map(len, xs.values()))", "bool(xs)", "{{**xs}}",
    "next(iter(xs.items()))", "list(zip(xs, xs.values()))", "xs[{n}]", "xs.get(None)", "(1, 2) in xs", "xs.pop({name!r})",
    "[k for k, t in xs.items() if len(t) == {n}]", "xs[{name!r}].upper()[:{n}]", "xs.update(a='b')",
)  # fmt: skip
REFUSED = frozenset({"xs.append(1)", "xs.sort()", "xs.update(a='b')"})
"""Documented refusals: a lazy list or dict cannot be changed."""


def statements(seed: int, real: list[str] | dict[str, str]) -> Iterator[str]:
    """Expressions without end."""
    choice = random.Random(seed)
    is_list = isinstance(real, list)
    items = list(real if isinstance(real, list) else real.values())
    names = ["absent", "", *(() if isinstance(real, list) else list(real))]
    while True:
        some = choice.choice(items) if items else ""
        at = choice.randrange(max(len(some), 1))
        words = [choice.choice((*WORDS, some[at : at + choice.choice((1, 3, 6, 12))] or "z")) for _ in range(2)]
        fill = {
            "w": words[0] or "a", "x": words[1] or "b", "p": choice.choice(PATTERNS), "n": choice.randrange(8),
            "v": choice.choice((some, some[:-1], "nothing")) if len(some) < 2000 else "nothing",
            "i": choice.randint(-12, 12), "j": choice.choice((None, choice.randint(-12, 40))),
            "k": choice.choice((None, 1, 2, -1, -3)), "name": choice.choice(names),
        }  # fmt: skip
        kind = choice.random()
        if kind < 0.4:
            form = choice.choice(LISTS if is_list else DICTS)
        else:
            value, test = choice.choice(VALUES), choice.choice(TESTS)
            where = " if " + test if kind < 0.8 else ""
            if is_list:
                form = choice.choice(
                    (f"[{value} for d in xs{where}]", f"[(i, {value}) for i, d in enumerate(xs){where}]")
                )
            else:
                form = choice.choice(
                    (f"{{{{k: {value} for k, d in xs.items(){where}}}}}", f"[{value} for d in xs.values(){where}]")
                )
        yield form.format(**fill).replace("None:", ":").replace(":None", ":")


def plain(value: Any, depth: int = 0) -> Any:
    """A value as what it stands for."""
    if isinstance(value, LazyText):
        return "".join(value.chunks()) if len(value) > 1 << 20 else str(value)  # type: ignore[attr-defined,arg-type]
    if isinstance(value, LazyItems | list):
        return [plain(item) for item in value]  # type: ignore[union-attr]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, set | frozenset):
        return {plain(item) for item in value}
    if isinstance(value, LazyMapping | Mapping):
        return [(plain(key), plain(item)) for key, item in value.items()]  # type: ignore[union-attr]
    return value


def namespace(xs: Any, kit: Any = None) -> dict[str, Any]:
    names = dict(kit.names) if kit else {}
    given = {"__name__": "__main__", "__builtins__": vars(builtins) | names, **names, "xs": xs}
    exec(compile("import collections, functools, itertools, json, random, re", "<cell>", "exec"), given)
    return given


def run(code: str, names: dict[str, Any], kit: Any = None) -> Any:
    """What a statement gives, or the kind of its error."""
    tree = ast.parse(f"found = {code}")
    try:
        exec(compile(kit.transform(tree) if kit else tree, "<cell>", "exec"), names)
        return plain(names.pop("found"))
    except ContextTooLarge:
        return ContextTooLarge
    except StopIteration:
        return StopIteration
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        return next(
            kind for kind in (TypeError, IndexError, KeyError, ValueError, AttributeError) if isinstance(error, kind)
        )


def differences(xs: Any, real: list[str] | dict[str, str], seed: int, count: int) -> list[str]:
    """Statements that give something else on a lazy list or dict than on the real one."""
    kit = xs.repl_namespace()
    mine, theirs = namespace(xs, kit), namespace(real)
    found = []
    for number, code in enumerate(statements(seed, real)):
        if number == count:
            return found
        got = run(code, mine, kit)
        if code in REFUSED or ".pop(" in code:
            expected: Any = TypeError
        else:
            expected = run(code, theirs)
        if got is ContextTooLarge or got == expected:
            continue
        found.append(f"{code}: {got!r:.300} in place of {expected!r:.300}")
    return found


def texts(seed: int, count: int, most: int) -> list[str]:
    """Documents of 0 to `most` characters."""
    choice = random.Random(seed)
    return [
        "".join(choice.choices(WORDS, k=choice.choice((0, 1, 3, choice.randrange(most // 4 + 1)))))[:most]
        for _ in range(count)
    ]


def pairs(seed: int, items: Sequence[str], double: bool) -> list[tuple[str, str]]:
    choice = random.Random(seed)
    return [(choice.choice((f"name {i % 7 if double else i}", f"é/{i}.txt")), item) for i, item in enumerate(items)]


# -- as cells of a runner ----------------------------------------------------------------------------------------------

IN_A_CELL = '''\
import collections, functools, itertools, json, random, re
def plain(value):
    """A value as what it stands for, as the code of a model makes it real."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return tuple([plain(item) for item in value])
    if isinstance(value, (set, frozenset)):
        return {plain(item) for item in value}
    if isinstance(value, dict) or hasattr(value, "items"):
        return [(plain(key), plain(item)) for key, item in value.items()]
    if isinstance(value, list) or type(value).__name__ in ("dict_keys", "dict_values", "dict_items"):
        return [plain(item) for item in value]
    return value
xs, found = context, []
'''
CELL = """\
try:
    found.append(plain({code}))
except MemoryError:
    found.append("too large")
except (StopIteration, TypeError, ValueError, LookupError, AttributeError) as error:
    found.append(next(k.__name__ for k in (StopIteration, TypeError, IndexError, KeyError, ValueError, AttributeError) if isinstance(error, k)))
"""  # fmt: skip
AT_ONCE = 40
"""Statements in a cell."""


def differences_in_cells(
    call: Callable[[str], str], real: list[str] | dict[str, str], seed: int, count: int
) -> list[str]:
    """Statements that give something else in the cells of a runner than on the real list or dict.

    `call` runs a cell and returns the `repr` of its variable `found`.
    """
    theirs, different, too_large = namespace(real), [], 0
    asked = list(islice(statements(seed, real), count))
    for start in range(0, count, AT_ONCE):
        codes = asked[start : start + AT_ONCE]
        told = call(IN_A_CELL + "".join(CELL.format(code=code) for code in codes))
        for code, got in zip(codes, ast.literal_eval(told), strict=True):
            expected = TypeError if code in REFUSED or ".pop(" in code else run(code, theirs)
            expected = expected.__name__ if isinstance(expected, type) else expected
            too_large += got == "too large"
            if got not in (expected, "too large"):
                different.append(f"{code}: {got!r:.300} in place of {expected!r:.300}")
    assert too_large < count / 20
    return different
