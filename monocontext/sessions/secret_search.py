"""Find the secrets in a text. Pure.

Two passes search for pieces of known secrets and for words that name secrets; patterns run only where one is found.
Each pattern costs a bounded number of steps, so the cost is linear in the length. Text is also searched with escapes
resolved, line wraps joined and base64 decoded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator

from monocontext.sessions.escapes import DecodedView, decode_escapes, drop_invisible, join_wraps, long_words, swap_bytes
from monocontext.sessions.secret_columns import find_in_columns
from monocontext.sessions.secret_cookies import find_cookies
from monocontext.sessions.secret_names import (
    FOREIGN,
    PROVIDERS,
    Strength,
    is_code,
    is_mixed,
    is_secret,
    looks_random,
    strength_of,
)
from monocontext.sessions.secret_patterns import BEGINNINGS, PIECES, SHAPELESS, WORDS, Shape
from monocontext.sessions.secret_pem import KEY_BEGINNINGS, find_private_keys, match_bare_key
from monocontext.sessions.secret_pieces import WordFinder
from monocontext.sessions.secret_rules import NAMED, NAMED_GAP, SHAPED

Span = tuple[int, int, str]
"""Start, stop, kind."""

_NESTED = 4
"""JSON in JSON in JSON is seen in practice: a tool's result that quotes a transcript; a URL may be within."""
# Wrapped as `base64` and mail do, or in one run. 16 characters are 12 bytes: nothing shorter has a name and a value.
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/_-]{60,76}\r?\n[ \t]{0,20}){1,2000}[A-Za-z0-9+/_-]{0,76}|[A-Za-z0-9+/_-]{16,})={0,2}"
)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16}")
_STANDARD = str.maketrans("-_", "+/", " \t\r\n=")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")

_NAMING = ["pass", "kennwort", "contrase", "clave", "mdp", "senha", "haslo", "heslo", "jelszo", "wachtwoord", "losenord", "adgangskode", "salasana", "geslo", "parol", "sifre", "lozinka", "zaporka", "mnemonic", "palavra", "pw", "psw", "psk", "token", "secret", "cred", "key", "geheim", "hmac", "_pat", "phrase", "sumo", "bindpw"]  # fmt: skip


def find_secrets(text: str, extra: Iterable[tuple[str, re.Pattern[str]]] = ()) -> list[Span]:
    """The spans of secrets: not overlapping, in order. `extra` are further kinds and their patterns."""
    return merge_spans(_find_spans(text, tuple(extra), _NESTED))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """In order; overlapping ones are merged, with the kind of the first."""
    merged: list[Span] = []
    for start, stop, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            if stop > merged[-1][1]:
                merged[-1] = (merged[-1][0], stop, merged[-1][2])
        elif start < stop:
            merged.append((start, stop, kind))
    return merged


def _find_spans(text: str, extra: tuple[tuple[str, re.Pattern[str]], ...], nested: int) -> Iterator[Span]:
    yield from _find_plain(text, extra)
    for view in join_wraps(text):
        yield from ((view.place(a), view.place(b - 1) + 1, kind) for a, b, kind in _find_plain(view.text, extra))
    for view in drop_invisible(text):
        for a, b, kind in _find_spans(view.text, extra, nested):
            yield view.place(a), view.place(b - 1) + 1, kind
    if swapped := swap_bytes(text):
        yield from _find_plain(swapped, extra)
    if nested:
        for view in decode_escapes(text):
            for start, stop, kind in _find_spans(view.text, extra, nested - 1):
                yield view.place(start), view.place(stop), kind


def _find_plain(text: str, extra: tuple[tuple[str, re.Pattern[str]], ...]) -> Iterator[Span]:
    """The secrets of the text without resolving escapes."""
    for kind, pattern in extra:
        yield from (
            (*found.span("secret" if "secret" in pattern.groupindex else 0), kind) for found in pattern.finditer(text)
        )
    long = long_words(text)
    done = 0
    for start, _, shapes in _BEGINNING.find(long.text):
        if start < done:
            continue
        at = long.place(start)
        for shape in shapes:
            for begin, end in shape.spans(text, at):
                done = max(done, start + end - at)
                yield begin, end, shape.kind
    for kind, pattern in _SHAPELESS:
        for found in pattern.finditer(long.text):
            group = "secret" if "secret" in pattern.groupindex else 0
            if looks_random(found[group], 32):
                begin = long.place(found.start(group))
                yield begin, begin + len(found[group]), kind
    for piece, shape in _PIECE:
        at = text.find(piece) if piece in long.text else -1
        while at >= 0:
            yield from ((*span, shape.kind) for span in shape.spans(text, at))
            at = text.find(piece, at + len(piece))
    if "-----" in text:
        yield from ((*span, "private-key") for span in find_private_keys(text))
    lower = text.replace("\u0130", "I").lower()  # the one letter that is longer in lower case
    for start, stop, rows in (_WORD if text.isascii() else _ANY_WORD).find(lower):
        for row in rows:
            if row is None:
                yield from _find_named(text, start, stop)
                yield from ((*span, "named-secret") for span in find_in_columns(text, start))
            else:
                yield from ((*span, row.kind) for span in row.spans(text, start))
    yield from ((*span, "cookie") for span in find_cookies(text, lower))
    yield from _find_encoded(text, long)


# --- names and values -----------------------------------------------------------------------------------------------

_MARGIN = r"(?:[+-]|[ ]{0,7}\d{1,6}(?:[:\t|\u2192]))?"
"""What a diff or a listing puts before a line."""
_AFTER = re.compile(
    r"(?P<rest>(?i:(?:[^\W是はが为為]|-){0,40}+(?:[ ](?:access[ ]key|key|token|code|passe?|phrase|khẩu|id)\b){0,2}))"
    r"(?P<close>(?:\[\w{0,4}\])?(?:\\{0,7}[\"'`])?(?:\*\*)?[)\]]?)"
    r"(?P<prompt>[ ]?\[[^\]\n]{0,40}\]|[ ]?\([^)\n]{0,40}\)|[ ](?i:for|of|to|от|для|von|für|fuer|de|para|pour|per)[ ][^\n:：=\"',;(){}%]{0,80}(?:'[^'\n]{0,200}')?)?"
    r"(?P<type>[ ]{0,3}:[ ]?(?:&(?:'\w{1,20} )?)?[A-Za-z_][\w.|\[\]? ]{0,40}?(?=[ ]?=[ ]?[\"'])|[ ](?:string|String|str)(?=[ ]=))?"
    r"[ \t]{0,40}(?P<sep>:=|=>|[!=?]?={1,3}|\|\|=?|\?\?|\?:|[ ]\|(?=[ ])|:{1,2}(?!=)|：|＝|,(?=[ ]?\\{0,7}[\"'])|\((?=\\{0,7}[\"'])|>|是|は|は、|为|"
    r"(?i:is|ist|es|est|è|é|jest|är|er|on)[ ]?:?(?=[ ][\"'`:]?\S)|[ ](?=\\{0,7}[\"'`])|(?=\s|</))(?:\*\*)?[ \t]{0,40}"
)
_QUOTED = re.compile(
    r"(?:[rbufLRBUFN@$]{0,2}|(?:new )?(?:b64decode|SecretStr|SecureString|String|Some|Secret)\()(?P<quote>\\{0,7}(?:\"\"\"|'''|[\"'`]))"
    r"(?P<value>[A-Za-z0-9+/_.-]{200,20000}+={0,2}(?=(?P=quote))|(?:(?!(?P=quote))[^\n]){1,500})(?P=quote)"
)
_BARE = re.compile(r"(?P<value>[^\s\"'`]{1,400}+[A-Za-z0-9+/=_.-]{0,2000})")
_PHRASE = re.compile(
    r"(?P<value>[^\s\"'`(){}<>\[\]=,;:]{2,30}(?:[ ][^\s\"'`(){}<>\[\]=,;:]{2,30}){1,7})[ \t\r]*(?:$|\n)"
)
_BLOCK = re.compile(
    r"[|>][+-]?\d?[ \t]*\n" + _MARGIN + r"[ \t]{1,60}(?P<value>[^\s\"'`]{4,2000})(?=[ \t\r]*(?:$|[\n\"'\\]))"
)
_NEXT_LINE = re.compile(
    r"[ \t]*\n" + _MARGIN + r"[ \t]{1,60}(?P<value>[^\s\"'`:{}\[\]()]{4,2000})(?=[ \t\r]*(?:$|[\n\"'\\]))"
)
_LIST = re.compile(
    r"\[|[{(](?=\s{0,80}[\"'][^\"'\n]{1,500}[\"']\s{0,20}[,})])|(?=[ \t\r]{0,80}\n" + _MARGIN + r"[ \t]{0,60}-[ \t])"
)
_ITEM = re.compile(
    r"[ \t,]{0,200}(?:\r?\n"
    + _MARGIN
    + r"\s{0,200})?(?:-[ \t]{1,4})?(?:\\{0,7}[\"'`](?P<quoted>[^\"'`\n\\]{1,500})\\{0,7}[\"'`]|(?P<bare>(?!#)[^\s\"'`,\]\[{}:]{8,500})(?=[\s,\]\"'\\]|$))"
)
_BRIDGE = re.compile(
    r"(?:\\{0,7}[\"'])?[ \t,/]{0,80}(?:(?<=[\"', \t/])|\r?\n"
    + _MARGIN
    + r"\s{0,60})(?:-{2}|\\{0,7}[\"'])?(?i:value|default|content|secretstring|data|secret-string|body)\\{0,7}[\"']?\s{0,10}[:=]?\s{0,10}"
    r"|\\{0,7}[\"']\s{0,4}\{[^{}]{0,400}?\b(?:default|value)\s{0,10}=\s{0,10}"
    r"|\\{0,7}[\"']\s{0,4}:\s{0,4}\{[^{}]{0,200}?\\{0,7}[\"'](?i:value|default)\\{0,7}[\"']\s{0,4}:\s{0,4}"
    r"|</(?i:key|name)>\s{0,40}" + _MARGIN + r"\s{0,40}<(?i:string|value)>"
)
_XML = re.compile(
    r"(?:[\"' ][^<>\n]{0,80})?>\s{0,40}"
    + _MARGIN
    + r"\s{0,40}(?:<!\[CDATA\[)?(?P<value>[^<>\s]{3,500})(?:\]\]>)?\s{0,40}</"
)
_CALLED = re.compile(r"[:(\\]")
_GAP = re.compile(r"(?:--?[a-z]{1,12}[ =]|\d[ ])?(?P<value>[A-Za-z0-9!@#$%^&*+=.?-]{9,100})(?=[\s\"'`,;]|$)")
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_QUALIFIER = re.compile(
    r"(?i:\b(?:api|secret|access|private|auth|access[ ]key|signing|encryption|app|client|account|license)|mot[ ]de|kata|mật)[ .]$"
)
_SPACE_NAME = re.compile(
    r"(?i:(?<![\w-])-{1,2}[\w-]*|\b(?:setenv|env|export|arg|set[ ]-\w{1,3}|set|config:set|configure[ ]set|config[ ]set|secret[ ]set|login[ ]\S{1,100}|user(?:name)?[ ]\S{1,100})[ \t]+[\w.:/-]*)$"
)
_LINE_START = re.compile(r"(?:[+>|-][ \t]*)?(?:\d{1,6}(?:\t|[ ]*[:|\u2192-])[ \t]*)?[\w\t \"'*+>.$:/-]{0,100}$")
_TYPE_WORDS = frozenset(
    ["str", "string", "int", "bool", "text", "varchar", "bytes", "secretstr", "any", "object", "number", "boolean"]
)


def _find_named(text: str, start: int, stop: int) -> Iterator[Span]:
    """The value of a name around a word that says its value is a secret."""
    after = _AFTER.match(text, stop)
    if after is None:
        return
    head = text[max(0, start - 60) : start]
    left = head[len(head.rstrip(_NAME_CHARACTERS)) :] if not text[start:stop].isascii() or head[-1:].isascii() else ""
    begin = start - len(left)
    name = left + text[start:stop] + after["rest"]
    if qualifier := _QUALIFIER.search(text, max(0, begin - 20), begin):
        name = qualifier[0].replace(" ", "_") + name
    strength = strength_of(name)
    if strength is Strength.NONE or (name == "PASS" and after["sep"] != "="):  # the word of a test's report
        return
    sep, close, at = after["sep"], after["close"], after.end()
    before = text[begin - 1 : begin]
    is_xml = before in ("<", "/", ":", '"', "'", ".") and "<" in text[max(0, begin - 60) : begin]
    for pattern in (_XML,) if is_xml else ():
        if (found := pattern.match(text, after.end("rest"))) and is_secret(found["value"], strength):
            yield *found.span("value"), "named-secret"
            return
    if sep in ("", " ", ">", ",", "(") or (before in "\"'" and before) or text[at : at + 1] in "\n":
        bridge = _BRIDGE.match(text, after.end("rest"))
        if bridge:
            at, sep, close = bridge.end(), ":", ""
            if bridge[0].startswith("</"):
                found = re.compile(r"(?P<value>[^<>\s]{3,500})</").match(text, at)
                if found and is_secret(found["value"], strength):
                    yield *found.span("value"), "named-secret"
                return
        elif sep == ">":
            return
    if sep == "," and not (close and (text[begin - 2 : begin - 1] == "(" or left.startswith("-"))):
        return
    is_prose = sep in ("是", "は", "は、", "为", " |") or sep[0:1].isalpha()
    quoted = _QUOTED.match(text, at)
    if quoted:
        if sep == " " and strength < Strength.PASSWORD and not _SPACE_NAME.search(text, max(0, begin - 120), begin):
            return
        value = quoted["value"]
        is_loose = sep in ("(", " ") or is_prose
        stands_alone = is_mixed(value) and not _CALLED.search(value) and not name.lower().endswith("pass")
        is_said = sep == " " and (name.upper() == name or _SPACE_NAME.search(text, max(0, begin - 120), begin))
        if is_loose and not stands_alone and not is_said:
            return
        if value.startswith((" ", "%")):
            return
        if is_secret(
            value.rstrip("\\"), strength, is_sure=sep == "=" and name.upper() == name and at == after.end("sep")
        ):
            yield *quoted.span("value"), "named-secret"
        return
    if sep in (",", "("):
        return
    if sep in (":", "=", ":=", "=>") and (listed := _LIST.match(text, at)):
        yield from _find_listed(text, listed.end(), strength)
        return
    if sep in ("", " ") and not (
        (left.startswith("-") and before in ("", " ", "\t", "'", '"', "[", ","))
        or _SPACE_NAME.search(text, max(0, begin - 120), begin)
    ):
        gap = _GAP.match(text, at)
        if gap and strength is Strength.PASSWORD and not name.endswith("pass") and looks_random(gap["value"], 9):
            yield *gap.span("value"), "named-secret"
        return
    block = _BLOCK.match(text, at) or (sep == ":" and _NEXT_LINE.match(text, at))
    if block:
        if is_secret(block["value"], min(strength, Strength.TOKEN), is_quoted=False):
            yield *block.span("value"), "named-secret"
        return
    found = _BARE.match(text, at)
    if not found:
        return
    phrase = _PHRASE.match(text, at) if sep in (":", "：") and strength is Strength.PASSWORD else None
    if phrase and any(map(str.isdigit, phrase[0])) and is_secret(phrase["value"], strength, is_sure=False):
        yield *phrase.span("value"), "named-secret"
        return
    value, place = found["value"], found.start()
    line = text.rfind("\n", max(0, begin - 200), begin) + 1
    starts_line = bool(_LINE_START.match(text[max(line, begin - 100) : begin]))
    ends_line = text[found.end() : found.end() + 1] in ("", "\n", "\r") or text[found.end() : found.end() + 2] in (
        " \n",
        "  ",
        " #",
    )
    if before in ("?", "&", ";", "#"):
        if before != ";" or "://" in text[max(0, begin - 300) : begin]:
            strength = max(strength, Strength.TOKEN)
        value = re.split(r"[&;)<>\]\\]" if before == ";" else r"[&;#)<>\]\\]", value)[0]
    elif not (starts_line and ends_line):
        value = re.split(r"[;|<>&]", value)[0]
    value = value.rstrip(",;.\\)}]").removesuffix("**")
    is_tight = (
        sep == "="
        and after.start("sep") == after.end("prompt" if after["prompt"] else "close")
        and at == after.end("sep")
    )
    is_upper = name.upper() == name
    if value.lower() == name.lower() or value.lower() in _TYPE_WORDS or is_code(value.partition(",")[0]):
        return
    if strength is Strength.PASSWORD and sep == ":" and value.isdecimal() and len(value) >= 6:  # a number in JSON
        yield place, place + len(value), "named-secret"
        return
    if is_prose and not (is_secret(value, strength, is_quoted=False, is_sure=False)):
        return
    is_sure = (is_tight and (is_upper or before in ("?", "&"))) or (
        starts_line and ends_line and (sep in (":", "：", "") or is_tight) and (strength is Strength.PASSWORD)
    )
    if is_sure and strength is Strength.TOKEN and is_upper and is_tight and not is_code(value) and len(value) >= 8:
        strength = Strength.PASSWORD
    if is_secret(value, strength, is_quoted=False, is_sure=is_sure):
        yield place, place + len(value), "named-secret"


def _find_listed(text: str, at: int, strength: Strength) -> Iterator[Span]:
    """The items of a list, in brackets or after dashes."""
    for _ in range(200):
        item = _ITEM.match(text, at)
        if not item:
            return
        group = "quoted" if item["quoted"] else "bare"
        value, is_quoted = item[group], group == "quoted"
        if is_secret(value, min(strength, Strength.TOKEN), is_quoted=is_quoted) or (
            is_mixed(value) and is_secret(value, strength, is_quoted=is_quoted, is_sure=False)
        ):
            yield *item.span(group), "named-secret"
        at = item.end()


# --- base64 ---------------------------------------------------------------------------------------------------------


def _find_encoded(text: str, long: DecodedView) -> Iterator[Span]:
    """Runs of base64 whose text holds a secret. Pictures and hashes are no text when decoded."""
    done = 0
    for start in _RUN.finditer(long.text):
        match = _ENCODED.match(text, long.place(start.start()))
        if match is None or match.start() < done:
            continue
        done, run = match.end(), match[0]
        if run.islower() or run.isupper():  # text in base64 has both
            continue
        if run[0] in "+-" and text[match.start() - 1 : match.start()] in ("", "\n"):
            run = run[1:].replace("\n" + run[0], "\n")  # of a diff
        run = run.translate(_STANDARD)
        run = run[: len(run) - (len(run) % 4 == 1)]  # the first letter of a group that was cut
        data = base64.b64decode(run + "=" * (-len(run) % 4))
        is_wide = len(data) > 8 and not any(data[1:16:2])
        plain = data.decode("utf-16-le" if is_wide else "utf-8", "replace")
        # A word after a wrapped text may look as its last line.
        if (
            _CONTROL.search(plain, 0, len(plain) * 9 // 10)
            or "\ufffd" in plain[: len(plain) * 9 // 10 if "\n" in match[0] else len(plain)]
        ):
            continue
        for _, _, kind in _find_spans(plain, (), 1):
            yield *match.span(), kind
            break


# --- tables ---------------------------------------------------------------------------------------------------------


class _BareKey(Shape):
    def spans(self, text: str, at: int) -> list[tuple[int, int]]:
        return [found] if (found := match_bare_key(text, at)) else []


def _beginning_shapes() -> Iterator[tuple[str, Shape]]:
    for kind, pieces, rest in BEGINNINGS:
        shape = Shape(kind, f"(?:{'|'.join(map(re.escape, pieces.split()))})(?:{rest})")
        yield from ((piece, shape) for piece in pieces.split())
    for kind, entropy, pieces, pattern in SHAPED:
        yield from ((piece, Shape(kind, pattern, entropy=entropy)) for piece in pieces.split())
    yield from ((piece, _BareKey("private-key", "")) for piece in KEY_BEGINNINGS)


def _piece_shapes() -> Iterator[tuple[str, Shape]]:
    for kind, pieces, lead, pattern in PIECES:
        yield from ((piece, Shape(kind, pattern, lead)) for piece in pieces.split())


def _word_shapes() -> Iterator[tuple[str, Shape | None]]:
    for kind, pieces, lead, pattern in WORDS:
        shape = Shape(kind, f"(?i:{pattern})", lead)
        yield from ((piece.replace("~", " "), shape) for piece in pieces.split())
    for kind, entropy, words, value in NAMED:
        shape = Shape(
            kind,
            f"(?i:(?:{'|'.join(map(re.escape, words.split()))}){NAMED_GAP}(?P<secret>{value})(?![a-z0-9]))",
            entropy=entropy,
        )
        yield from ((word, shape) for word in words.split())
    yield from ((word, None) for word in (*_NAMING, "auth", "accountkey", "sharedaccesskey", *PROVIDERS, *FOREIGN))


_BEGINNING = WordFinder(_beginning_shapes(), r"(?<![A-Za-z0-9])")
_SHAPELESS = [(kind, re.compile(pattern)) for kind, pattern in SHAPELESS]
_PIECE = list(_piece_shapes())
_ANY_WORD = WordFinder(_word_shapes())
_WORD = WordFinder(row for row in _word_shapes() if row[0].isascii())
