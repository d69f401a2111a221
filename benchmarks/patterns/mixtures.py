"""Programs that cross families: code, Chinese, a memory of sessions, misuse, summaries of both ends."""

from __future__ import annotations

import re
from random import Random

from benchmarks.patterns.program import Conversation, Program, numbers
from benchmarks.patterns.texts import Text, planted, text_of

SESSIONS = 30

_HEAD = "print(len(context))\nprint(context[:1500])\n"


def _symbol_text(frames: int) -> Text:
    text = text_of("code", frames)
    text.plant(0.33, "def reticulate_splines(self, order):", "    return self.spline_table[order] * 1729")
    for share in (0.12, 0.58, 0.86):
        text.plant(share, "    total += reticulate_splines(order)")
    text.truth = "1729 4"
    return text


def _symbol_search(text: Text) -> Conversation:
    yield _HEAD
    printed = yield "at = context.find('def reticulate_splines')\nprint(at)\nprint(context[at:at + 1200])\n"
    said = re.search(r"\* (\d+)", printed)
    printed = yield (
        "import re\nuses = [m.start() for m in re.finditer(r'reticulate_splines\\(', context)]\nprint(uses)\n"
        "for use in uses:\n    print(context[max(0, use - 400):use + 400].strip()[:200])\n"
    )
    uses = numbers(printed.partition("\n")[0])
    return f"{said[1] if said else 'lost'} {len(uses)}"


def _cjk(text: Text) -> Conversation:
    yield "print(len(context))\nprint(context[:1000])\n"
    printed = yield "at = context.find('燈塔名為')\nprint(at)\n"
    offset = numbers(printed)[0]
    printed = yield f"for i in range({offset - 9000}, {offset + 9000}, 3000):\n    print(context[i:i + 3200])\n"
    result = re.search(r"建於(\w\w)年", printed)
    return result[1] if result else "lost"


def _sessions(text: Text) -> Conversation:
    """Reads backwards to the session in which a fact last changed."""
    yield "print(len(context))\nprint(context[-4000:])\n"
    printed = yield (
        "end, seen = len(context), []\nfor _ in range(20):\n    at = context.rfind('## Session ', 0, end)\n"
        "    if at < 0:\n        break\n    line = context[at:at + 3000].split('\\n')[0].strip()\n"
        "    seen.append(line)\n    end = at\nprint('\\n'.join(seen))\n"
    )
    told = re.findall(r"Session (\d+) begins; the favourite colour is (\w+)", printed)
    first = min(int(number) for number, colour in told if colour == told[0][1])
    return f"{first} {told[0][1]}"


def _naive(text: Text) -> Conversation:
    """Searches for three phrases, of which the text has one.

    All frames of filler are equal, so a filter errs in none of them or in all. These phrases are chosen so that it errs
    in none.
    """
    yield "print(type(context), len(context))\nprint('\\n'.join(context.splitlines()[:20]))\n"
    printed = yield (
        "for keyword in ['password of the vault', 'hidden-passphrase', 'secret-vault-key']:\n"
        "    at = context.lower().find(keyword)\n    print(keyword, at)\n"
        "    if at >= 0:\n        print(context.lower()[at - 200:at + 200])\n"
    )
    result = re.search(r"password of the vault is (\w+)", printed)
    return result[1] if result else "lost"


def _ends_text(frames: int) -> Text:
    text = text_of("prose", frames)
    text.plant(0.0, "Report for the board, opened by Ms. Larkspur")
    end = text.characters
    text.plant((end - 3 * text.width) / end, "Closed and countersigned by Mr. Foxglove")
    text.truth = "Larkspur Foxglove"
    return text


def _ends(text: Text) -> Conversation:
    yield "print(len(context))\nprint(context[:3000])\n"
    printed = yield "print(llm_query('Who opened and who closed this?\\n' + context[:60000] + context[-6000:]))\n"
    yield "print(context[:5000] + '...' + context[-5000:])\n"
    return printed.strip()


def _sign(prompt: str) -> str:
    return " ".join(re.findall(r"(?:opened by Ms\.|countersigned by Mr\.) (\w+)", prompt))


def _literal_zooms(text: Text) -> Conversation:
    """Two zooms a turn to literal addresses, then eight of them again."""
    yield "print(len(context))\n"
    dice, places, seen = Random(11), [], 0
    for _ in range(12):
        pair = [dice.randrange(text.characters - 4000) for _ in range(2)]
        places += pair
        printed = yield (
            f"a = context[{pair[0]}:{pair[0] + 3000}]\nb = context[{pair[1]}:{pair[1] + 3000}]\n"
            "print(len(a.splitlines()) > 5, len(b.splitlines()) > 5)\n"
        )
        seen += printed.count("True")
    for offset in places[:8]:
        yield f"print(context[{offset}:{offset + 3000}])\n"
    return str(seen)


SCANS = 8
STEPS = 40


def _step(text: Text) -> int:
    return min(400_000, text.characters // SCANS // STEPS)


def _scans_text(frames: int) -> Text:
    text = text_of("prose", frames)
    step = _step(text)
    text.plant((0.5 * text.characters + 10.5 * step) / text.characters, "the password of the day is Corduroy")
    text.truth = "Corduroy"
    return text


def _interleave(text: Text) -> Conversation:
    """Eight scans in turns, through a cache that is too small to read far ahead for all of them."""
    yield _HEAD
    step = _step(text)
    printed = yield (
        f"import re\nsize, step, found = len(context) // {SCANS}, {step}, ''\n"
        f"for i in range({STEPS}):\n    for k in range({SCANS}):\n"
        "        piece = context[k * size + i * step:k * size + (i + 1) * step]\n"
        "        if 'password of the day' in piece:\n            found = piece\n"
        "print(re.findall(r'day is (\\w+)', found))\n"
    )
    return printed.strip()[2:-2]


_CJK_LINE = "黑龍江畔有一座燈塔名為𠮷祥塔建於甲子年"
_NAIVE_LINE = "2026-03-01T12:00:00 ERROR the Password of the vault is Heliotrope"
_SESSION_LINES = [
    (
        (number + 0.5) / SESSIONS,
        f"## Session {number:03d} begins; the favourite colour is {'green' if number < 17 else 'maroon'} now",
    )
    for number in range(SESSIONS)
]

MIXTURES = (
    Program("symbol search", _symbol_text, _symbol_search, 0.30, prunable=True),
    Program("CJK windows", planted("cjk", "甲子", (0.57, _CJK_LINE)), _cjk, 0.30, prunable=True),
    Program("session memory", planted("prose", "17 maroon", *_SESSION_LINES), _sessions, 0.30, prunable=True),
    Program("naive misuse", planted("logs", "heliotrope", (0.66, _NAIVE_LINE)), _naive, 0.30, prunable=True),
    Program("head + tail summaries", _ends_text, _ends, 0.10, _sign),
    Program("literal zooms", planted("code", "24"), _literal_zooms, 0.10),
    Program("interleaved scans", _scans_text, _interleave, 1.00, cache_bytes=64 << 20),
)
