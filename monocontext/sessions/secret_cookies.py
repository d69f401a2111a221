"""Find the values of cookies that look random: a session or a login. Pure.

Cookies are found in headers (`Cookie`, `Set-Cookie`), in `curl -b`, in jars of Netscape's format, in the dictionaries
and calls of HTTP clients and browsers, and in pairs of `name` and `value` as in a HAR file. Only values are secrets:
names and attributes stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.sessions.secret_names import Strength, is_code, is_dummy, looks_random, strength_of

Span = tuple[int, int]

_MOST_CHARACTERS = 40_000
"""The most of one list of cookies that is searched."""
_VALUE = r"[^\s\"'`;,\\<>{}()\[\]]{16,4096}"
_NAME = r"[^\s\"'`;,\\<>{}()\[\]=:@]{1,100}"
_Q = r"[\"'`]"
# The word and the text up to its cookies: `cookies.set(`, `cookie_jar = `, `"Cookie", "value": `, `--cookie `.
_OPEN = re.compile(
    rf"cookie(?P<rest>[\w-]{{0,40}}(?:\(\))?(?:\.\w{{1,40}}){{0,3}})(?P<close>{_Q}?\]?\)?)"
    rf"(?P<value>\s{{0,20}},\s{{0,20}}{_Q}?value(?={_Q}?\s{{0,4}}[:=]))?{_Q}?"
    rf"\s{{0,4}}(?P<sep>[:=]{{1,2}}>?|[(\[{{]|,(?=\s{{0,20}}[\"'`\[])|(?= ))\s{{0,20}}(?:(?:new )?[\w.]{{1,60}}(?=\())?(?:[fbru](?={_Q}))?",
    re.IGNORECASE,
)
_HEADER_PAIR = re.compile(rf"(?:^|[;,&?]\s{{0,3}})(?P<name>{_NAME})\s?=\s?\"?(?P<value>{_VALUE})")
_PAIR = re.compile(
    rf"(?<![^\s\"'`;,{{(\[&?])(?P<name>{_NAME}){_Q}?\]?\s{{0,20}}(?:=>?|:|,)\s{{0,20}}(?:[fbru](?={_Q}))?{_Q}?(?P<value>{_VALUE})"
)
_VALUE_ALONE = re.compile(_VALUE)
_BRACKET = re.compile(r"[()\[\]{}]")
_BLOCK = re.compile(r"(?:\n(?:[+-]|[ ]{0,7}\d{1,6}[\t\u2192])?[ \t]{1,40}[^\n]{1,4400})*")
_CURL = re.compile(
    r"curl\b(?:(?!curl)[^\n]){0,2000}?\s(?:-[a-zA-Z]{0,6}b\s{0,2}|--cookie[ =])(?=[\"'$]{0,2}[^\s\"'=;]{1,100}=)"
)
_JAR = re.compile(
    r"\t(?:TRUE|FALSE)\t\d{1,20}\t(?P<name>[^\t\r\n]{1,200})\t(?P<value>[^\s\"'\\]{16,4096})", re.IGNORECASE
)
# On lower case: a search that begins with plain letters is ten times as fast as one that ignores case.
_VALUE_FIELD = re.compile(rf"value{_Q}?\s{{0,4}}[:=]\s{{0,4}}{_Q}(?P<value>{_VALUE}){_Q}")
_NAME_FIELD = re.compile(rf"(?<!\w)(?:name|key){_Q}?\s{{0,4}}[:=]\s{{0,4}}{_Q}(?P<name>{_NAME}){_Q}", re.IGNORECASE)
_OF_A_COOKIE = re.compile(
    r"\b(?:httpOnly|sameSite|hostOnly|expirationDate|storeId|maxAge|http_only|same_site)\b", re.IGNORECASE
)
_ATTRIBUTES = re.compile(
    r"domain|path|expires|expirationdate|max[-_]?age|samesite|priority|url|storeid|comment|version|port|partitionkey|sourcescheme|secure|httponly|name|key|"
    r"user-agent|referer|origin|host|etag|if-none-match|content-type|accept",
    re.IGNORECASE,
)  # fmt: skip
# Names of cookies that count visitors or keep a choice: they let nobody in.
_HARMLESS = re.compile(
    r"_ga(?:_|$)|_gid$|_gat|_gcl|_gac|_fb[pc]$|_hj|_uet|_cl[cs]k$|_pin_|_ttp$|_scid|__utm|_pk_|_vwo|_vis_|_mkto|mp_|ajs_|amp_|amplitude|optimizely|hubspotutk|__hs|"
    r"intercom-id|optanon|euconsent|cookie[-_]?(?:consent|law|preferences)|[\w-]*consent|_dc_gtm|nmstat|datr$|__gads$|__gpi$|_rdt_|_tt_|_lfa$|_li_|li_gc$|bcookie$",
    re.IGNORECASE,
)  # fmt: skip
# Parts of the names of cookies that let their bearer in.
_SESSION = re.compile(
    r"sess|sid$|^sid|auth|token|jwt|login|logged|remember|csrf|xsrf|secret|^__(?:Host|Secure)-|\.sid|ticket|identity|cf_clearance|^d$|^li_at$|sso|saml|oauth",
    re.IGNORECASE,
)
_DATE = re.compile(r"%?2?2?\d{4}-\d\d-\d\dT[\d.:%A+Z-]+", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9%._~+/:*-]+={0,2}")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def find_cookies(text: str, lower: str) -> Iterator[Span]:
    """The spans of the values in a text. `lower` is the text in lower case, with the same offsets."""
    if "cookie" in lower:
        yield from _find_after_word(text, lower)
    if "curl" in lower:
        for command in _CURL.finditer(text):
            yield from _find_in_string(text, command.end())
    if "\ttrue\t" in lower or "\tfalse\t" in lower:
        yield from (line.span("value") for line in _JAR.finditer(text) if holds_a_session(line["name"], line["value"]))
    if "value" in lower:
        spans = (field.span("value") for field in _VALUE_FIELD.finditer(lower))
        yield from (span for span in spans if _is_entry(text, *span))


def find_in_field(name: str, value: str) -> Iterator[Span]:
    """The spans in the value of a field that belongs to cookies: a header, or the value of one cookie."""
    found = list(_find_in_header(value, 0, len(value)))
    if not found and "=" not in value[:-2] and holds_a_session(name, value):
        found = [(0, len(value))]
    yield from found


def names_a_session(name: str) -> bool:
    """Whether the name of a cookie says that it lets its bearer in."""
    return not _HARMLESS.match(name) and (_SESSION.search(name) is not None or strength_of(name) >= Strength.TOKEN)


def holds_a_session(name: str, value: str) -> bool:
    """Whether a cookie's value is random and long enough for a session, and no attribute or counter of visitors."""
    if len(value) < 16 or _ATTRIBUTES.fullmatch(name) or _HARMLESS.match(name) or is_dummy(value) or _DATE.match(value):
        return False
    longest = 7.0 if _SESSION.search(name) else 4.5
    return (
        (looks_random(value, 16) and _PLAIN.fullmatch(value) is not None and not is_code(value))
        or _UUID.search(value) is not None
        or any(_is_random(run, longest) for run in _RUN.findall(value))
    )


def _is_random(run: str, longest: float) -> bool:
    """Whether letters and digits are mixed, in humps of at most `longest` characters on average. `looks_random` is
    stricter: this is known to be the value of a cookie."""
    digits = sum(map(str.isdigit, run))
    return digits >= 2 and len(run) - digits >= 4 and len(run) <= longest * len(_HUMPS.findall(run))


def _is_mixed_case(value: str) -> bool:
    """Whether a value has digits and letters of both cases, as no hash in hexadecimal has."""
    return len(value) >= 24 and all(any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper))


def _find_after_word(text: str, lower: str) -> Iterator[Span]:
    """The values after each word `cookie`: in brackets, in lines below it, or in a string."""
    at = done = 0
    while (at := lower.find("cookie", at)) >= 0:
        opened = _OPEN.match(text, at) if at >= done else None
        at += 6
        if opened is None or (opened["sep"] == "" and text[opened.start() - 1 : opened.start()] not in ("-", "<")):
            continue
        separator, separator_at = opened["sep"], opened.start("sep")
        begin = separator_at if separator in ("(", "{", "[") else opened.end()
        if separator == "[":  # cookies["name"] = "value"
            done = _end_of_line(text, begin)
        elif text[begin : begin + 1] in ("(", "[", "{"):
            done = _end_of_bracket(text, begin)
        elif separator == ":" and begin < len(text) and "\n" in text[separator_at:begin]:
            done = _end_of_block(text, separator_at)
        else:
            is_file = any(word in opened["rest"].lower() for word in ("file", "path", "jar", "name", "domain"))
            next_word = lower.find("cookie", begin, begin + _MOST_CHARACTERS)  # its cookies are found in its own turn
            name = "" if is_file else f"cookie{opened['rest']}"
            yield from _find_in_string(text, begin, name, next_word if next_word >= 0 else None)
            continue
        yield from _find_pairs(text, begin, done)


def _find_in_string(text: str, begin: int, name: str = "", most: int | None = None) -> Iterator[Span]:
    """The values in a string at `begin`, or in the rest of a line, up to `most`: a header, or with a name the value of
    that cookie."""
    begin += text.startswith("$'", begin)
    quote = text[begin : begin + 1]
    stop = -1
    if quote in ('"', "'", "`"):
        begin += 1
        stop = text.find(quote, begin, begin + _MOST_CHARACTERS if most is None else most)
    if stop < 0:
        stop = _end_of_line(text, begin, most)
    found = list(_find_in_header(text, begin, stop))
    value = _VALUE_ALONE.match(text, begin, stop) if name and not found else None
    if value and "=" not in value[0].rstrip("=") and holds_a_session(name, value[0]):
        found = [value.span()]
    yield from found


def _find_in_header(text: str, begin: int, stop: int) -> Iterator[Span]:
    part = text[begin:stop]
    for pair in _HEADER_PAIR.finditer(part):
        if holds_a_session(pair["name"], pair["value"]):
            yield begin + pair.start("value"), begin + pair.end("value")


def _find_pairs(text: str, begin: int, stop: int) -> Iterator[Span]:
    at = begin
    while pair := _PAIR.search(text, at, stop):
        name, at = pair["name"], pair.start("value")  # the value of no pair may be the name of the next
        if name.lower() == "value":  # another field of the object has the cookie's name
            name = _name_around(text, *pair.span("value")) or name
        if holds_a_session(name, pair["value"]):
            yield pair.span("value")
            at = pair.end()


def _is_entry(text: str, begin: int, stop: int) -> bool:
    """Whether a value belongs to a cookie, in a list of objects with a name and a value."""
    name, value = _name_around(text, begin, stop), text[begin:stop]
    if name is None or not holds_a_session(name, value):
        return False
    near = text[max(0, begin - 300) : stop + 300]
    return names_a_session(name) or _is_mixed_case(value) or _OF_A_COOKIE.search(near) is not None


def _name_around(text: str, begin: int, stop: int) -> str | None:
    """The name in the object around a value; None if it has none."""
    before = text[max(0, begin - 400) : begin].rpartition("{")[2]
    after = text[stop : stop + 400].partition("}")[0]
    found = [*_NAME_FIELD.finditer(before)][-1:] or [*_NAME_FIELD.finditer(after)][:1]
    return found[0]["name"] if found else None


def _end_of_line(text: str, begin: int, most: int | None = None) -> int:
    most = min(len(text), begin + _MOST_CHARACTERS) if most is None else most
    end = text.find("\n", begin, most)
    return most if end < 0 else end


def _end_of_block(text: str, begin: int) -> int:
    """The end of the indented lines of YAML below the line at `begin`."""
    block = _BLOCK.match(text, _end_of_line(text, begin), begin + _MOST_CHARACTERS)
    return block.end() if block else begin


def _end_of_bracket(text: str, begin: int) -> int:
    """The end of the brackets that open at `begin`."""
    depth = 0
    for bracket in _BRACKET.finditer(text, begin, begin + _MOST_CHARACTERS):
        depth += 1 if bracket[0] in "([{" else -1
        if depth == 0:
            return bracket.end()
    return min(len(text), begin + _MOST_CHARACTERS)
