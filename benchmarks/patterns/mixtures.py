"""Define programs that fit no single family: over code, Chinese, and sessions, with misuse, zooms and several scans."""

from __future__ import annotations

import re
from functools import partial
from random import Random

from benchmarks.patterns.families import NOT_FOUND
from benchmarks.patterns.program import Conversation, Program, numbers, read_matches
from benchmarks.patterns.texts import Text, planted_text, text_of

SCANS = 8
STEPS = 40

_COLOURS = ["green"] * 17 + ["maroon"] * 13  # the favourite one of each session
_SESSION_LINES = [
    ((number + 0.5) / len(_COLOURS), f"## Session {number:03d} begins; the favourite colour is {colour} now")
    for number, colour in enumerate(_COLOURS)
]

_HEAD = "print(len(context))\nprint(context[:1500])\n"
_FIND_USES = """\
import re
uses = [m.start() for m in re.finditer(r'reticulate_splines\\(', context)]
print(uses)
for use in uses:
    print(context[max(0, use - 400):use + 400].strip()[:200])
"""
_LIST_SESSIONS = """\
end, seen = len(context), []
for _ in range(20):
    at = context.rfind('## Session ', 0, end)
    if at < 0:
        break
    line = context[at:at + 3000].split('\\n')[0].strip()
    seen.append(line)
    end = at
print('\\n'.join(seen))
"""
_FIND_IN_LOWER = """\
for keyword in ['password of the vault', 'hidden-passphrase', 'secret-vault-key']:
    at = context.lower().find(keyword)
    print(keyword, at)
    if at >= 0:
        print(context.lower()[at - 200:at + 200])
"""
_SCAN_IN_TURNS = """\
import re
size, step, found = len(context) // {scans}, {step}, ''
for i in range({steps}):
    for k in range({scans}):
        piece = context[k * size + i * step:k * size + (i + 1) * step]
        if 'password of the day' in piece:
            found = piece
print(re.findall(r'day is (\\w+)', found))
"""


def _symbol_text(frames: int) -> Text:
    text = text_of("code", frames)
    text.plant(0.33, "def reticulate_splines(self, order):", "    return self.spline_table[order] * 1729")
    for share in (0.12, 0.58, 0.86):
        text.plant(share, "    total += reticulate_splines(order)")
    text.truth = "1729 4"
    return text


def _symbol_search(text: Text) -> Conversation:
    """Finds the definition of a function in source code, then its uses."""
    yield _HEAD
    printed = yield "at = context.find('def reticulate_splines')\nprint(at)\nprint(context[at:at + 1200])\n"
    number = re.search(r"\* (\d+)", printed)
    printed = yield _FIND_USES
    uses = numbers(printed.partition("\n")[0])
    return f"{number[1] if number else NOT_FOUND} {len(uses)}"


_cjk_text = planted_text("cjk", "甲子", (0.57, "黑龍江畔有一座燈塔名為𠮷祥塔建於甲子年"))


def _read_around_match(text: Text) -> Conversation:
    """Searches a Chinese text, then reads windows around the match that overlap."""
    yield "print(len(context))\nprint(context[:1000])\n"
    printed = yield "at = context.find('燈塔名為')\nprint(at)\n"
    offset = numbers(printed)[0]
    printed = yield f"for i in range({offset - 9000}, {offset + 9000}, 3000):\n    print(context[i:i + 3200])\n"
    result = re.search(r"建於(\w\w)年", printed)
    return result[1] if result else NOT_FOUND


_sessions_text = planted_text("prose", "17 maroon", *_SESSION_LINES)


def _sessions(text: Text) -> Conversation:
    """Reads backwards to the session in which a fact last changed: number 17, whose colour is the first maroon."""
    yield "print(len(context))\nprint(context[-4000:])\n"
    printed = yield _LIST_SESSIONS
    sessions = re.findall(r"Session (\d+) begins; the favourite colour is (\w+)", printed)
    latest = sessions[0][1] if sessions else NOT_FOUND
    first = min((int(number) for number, colour in sessions if colour == latest), default=-1)
    return f"{first} {latest}"


_VAULT_LINE = "2026-03-01T12:00:00 ERROR the Password of the vault is Heliotrope"
_vault_text = planted_text("logs", "heliotrope", (0.66, _VAULT_LINE))


def _lower_whole(text: Text) -> Conversation:
    """Searches a copy in lower case for three phrases, of which the text has one.

    All frames of filler are equal, so a filter is wrong about all of them or about none; with these phrases about none.
    """
    yield "print(type(context), len(context))\nprint('\\n'.join(context.splitlines()[:20]))\n"
    printed = yield _FIND_IN_LOWER
    result = re.search(r"password of the vault is (\w+)", printed)
    return result[1] if result else NOT_FOUND


def _ends_text(frames: int) -> Text:
    text = text_of("prose", frames)
    text.plant(0.0, "Report for the board, opened by Ms. Larkspur")
    end = text.characters
    text.plant((end - 3 * text.width) / end, "Closed and countersigned by Mr. Foxglove")
    text.truth = "Larkspur Foxglove"
    return text


def _summarize_ends(text: Text) -> Conversation:
    """Reads the beginning and the end, and asks a sub-model about both at once."""
    yield "print(len(context))\nprint(context[:3000])\n"
    printed = yield "print(llm_query('Who opened and who closed this?\\n' + context[:60000] + context[-6000:]))\n"
    yield "print(context[:5000] + '...' + context[-5000:])\n"
    return printed.strip()


_read_signatures = partial(read_matches, r"(?:opened by Ms\.|countersigned by Mr\.) (\w+)")
_zoom_text = planted_text("code", "24")


def _literal_zooms(text: Text) -> Conversation:
    """Reads at two literal addresses in each turn, then at eight of them again."""
    yield "print(len(context))\n"
    dice, offsets, seen = Random(11), [], 0
    for _ in range(12):
        pair = [dice.randrange(text.characters - 4000) for _ in range(2)]
        offsets += pair
        printed = yield (
            f"a = context[{pair[0]}:{pair[0] + 3000}]\nb = context[{pair[1]}:{pair[1] + 3000}]\n"
            "print(len(a.splitlines()) > 5, len(b.splitlines()) > 5)\n"
        )
        seen += printed.count("True")
    for offset in offsets[:8]:
        yield f"print(context[{offset}:{offset + 3000}])\n"
    return str(seen)


def _step(text: Text) -> int:
    """The characters that a scan reads at once."""
    return min(400_000, text.characters // SCANS // STEPS)


def _scans_text(frames: int) -> Text:
    text = text_of("prose", frames)
    step = _step(text)
    scanned = 0.5 * text.characters + 10.5 * step  # in the eleventh step of the fifth scan
    text.plant(scanned / text.characters, "the password of the day is Corduroy")
    text.truth = "Corduroy"
    return text


def _interleave(text: Text) -> Conversation:
    """Makes eight scans that take turns, with a cache that is too small to read far ahead for all of them."""
    yield _HEAD
    printed = yield _SCAN_IN_TURNS.format(scans=SCANS, steps=STEPS, step=_step(text))
    return printed.strip()[2:-2]  # the printed list is ['Corduroy']


MIXTURES = (
    Program("symbol search", _symbol_text, _symbol_search, most_stall=0.30),
    Program("CJK windows", _cjk_text, _read_around_match, most_stall=0.30),
    Program("session memory", _sessions_text, _sessions, most_stall=0.30),
    Program("naive misuse", _vault_text, _lower_whole, most_stall=0.30),
    Program("head + tail summaries", _ends_text, _summarize_ends, most_stall=0.10, answer=_read_signatures),
    Program("literal zooms", _zoom_text, _literal_zooms, most_stall=0.10, most_amplification=1.3, most_misses=0.15),
    Program("interleaved scans", _scans_text, _interleave, most_stall=1.00, cache_bytes=64 << 20),
)
