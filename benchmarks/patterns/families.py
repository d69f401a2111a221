"""Define ten families of programs, modelled on the most common runs of models.

Each has a function that makes its text, and a `Conversation`, which plays the model: a generator that yields the code
of a turn, receives what that code printed, and returns the answer. `FAMILIES`, at the end, says what each one does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from benchmarks.patterns.program import Conversation, Program, numbers, read_matches
from benchmarks.patterns.records import RECORD_BYTES, day_of
from benchmarks.patterns.texts import WIDTH, Text, count_in, planted_text, text_of

CHUNKS, CHUNK_CHARACTERS = 40, 400_000  # read by the linear scan
MAP_CHUNKS, MAP_CHUNK_CHARACTERS = 200, 200_000  # read by the map-reduce
SAMPLES = 200
NOT_FOUND = "lost"  # the answer of a conversation whose code found nothing
_CODE_WORDS = ("amber", "basalt", "cobalt")

_PEEK = "print(type(context), len(context))\nprint(context[:2000])\n"
_ASK_CHUNKS = """\
notes = []
for i in range(0, {stop}, {size}):
    chunk = context[i:i + {size}]
    notes.append(llm_query('Which code words does this name?\\n' + chunk))
print([note for note in notes if note != 'nothing'])
"""
_FIND_EACH_KEYWORD = """\
for keyword in ['incident-4711', 'vol-93 detached', 'unheard-of-word']:
    print(keyword, context.find(keyword))
"""
_SHOW_INCIDENTS = """\
import re
hits = [m.start() for m in re.finditer('incident-4711', context)]
print(hits)
for h in hits:
    print(context[max(0, h - 300):h + 300])
"""
_ASK_IN_BATCHES = """\
chunks = [context[i:i + {size}] for i in range(0, {stop}, {size})]
notes = []
for start in range(0, len(chunks), 20):
    prompts = ['Which code words does this name?\\n' + chunk for chunk in chunks[start:start + 20]]
    notes += llm_query_batched(prompts)
print([note for note in notes if note != 'nothing'])
"""
_BISECT = """\
size = {record}
low, high = 0, len(context) // size
while low < high:
    middle = (low + high) // 2
    line = context[(middle + 1) * size - {width}:(middle + 1) * size]
    if int(line.split()[4]) < {day}:
        low = middle + 1
    else:
        high = middle
print(low)
"""
_COUNT_IN_SAMPLES = f"""\
import random
random.seed(7)
samples = []
for _ in range({SAMPLES}):
    at = random.randrange(len(context) - 2000)
    samples.append(context[at:at + 2000])
print({{w: sum(s.count(w) for s in samples) for w in ('INFO', 'DEBUG', 'WARN')}})
"""
_LIST_CHAPTERS = """\
import re
heads = [(m.start(), m.group()) for m in re.finditer(r'(?m)^# Chapter \\d+: .*$', context)]
for at, head in heads:
    print(at, head.strip())
"""
_ASK_CHAPTERS = """\
starts = {starts}
summaries = []
for at in starts:
    summaries.append(llm_query('What is this about?\\n' + context[at:at + 60000]))
print(' '.join(summaries))
"""
_VOTE = """\
votes = []
for start in range({low}, {high}, 20000):
    votes.append(llm_query('How many delegates?\\n' + context[start:start + 40000]))
print(votes)
print(context[{offset}:{end}])
"""


def _covered_characters(text: Text, most_chunks: int, characters: int) -> int:
    """The characters in all chunks of `characters` to read: `most_chunks`, or fewer if the text is small."""
    return min(most_chunks, text.characters // characters) * characters


def _plant_words(frames: int, most_chunks: int, characters: int, shares: Sequence[float]) -> Text:
    """A text with three code words, each in a line at its share of the characters that the chunks cover."""
    text = text_of("prose", frames)
    covered_characters = _covered_characters(text, most_chunks, characters)
    for number, (share, word) in enumerate(zip(shares, _CODE_WORDS, strict=True)):
        text.plant(covered_characters * share / text.characters, f"the code word part {number} is {word}")
    text.truth = " ".join(_CODE_WORDS)
    return text


_chunk_text = partial(_plant_words, most_chunks=CHUNKS, characters=CHUNK_CHARACTERS, shares=(0.3, 0.6, 0.9))
_map_text = partial(_plant_words, most_chunks=MAP_CHUNKS, characters=MAP_CHUNK_CHARACTERS, shares=(0.15, 0.55, 0.95))


def _ask_about_chunks(text: Text, code: str, most_chunks: int, characters: int) -> Conversation:
    yield _PEEK
    printed = yield code.format(stop=_covered_characters(text, most_chunks, characters), size=characters)
    return " ".join(re.findall("|".join(_CODE_WORDS), printed))


_chunk_scan = partial(_ask_about_chunks, code=_ASK_CHUNKS, most_chunks=CHUNKS, characters=CHUNK_CHARACTERS)
_map_reduce = partial(_ask_about_chunks, code=_ASK_IN_BATCHES, most_chunks=MAP_CHUNKS, characters=MAP_CHUNK_CHARACTERS)


_INCIDENT = "2026-03-01T12:00:00 ERROR incident-4711 volume vol-93 detached"
_SIGNED_OFF = "2026-03-01T12:00:01 ERROR followed by operator-zebra signing off incident"
_grep_text = planted_text(
    "logs", "3 operator-zebra", (0.21, _INCIDENT), (0.48, _INCIDENT), (0.77, _INCIDENT), (0.7701, _SIGNED_OFF)
)


def _grep_and_zoom(text: Text) -> Conversation:
    yield _PEEK
    yield _FIND_EACH_KEYWORD
    printed = yield _SHOW_INCIDENTS
    hits = numbers(printed.partition("\n")[0])
    if not hits:
        return NOT_FOUND
    last = hits[-1]
    around = int(0.0001 * text.characters) + 2000
    zoom = f"window = context[{last - 500}:{last + around}]"
    printed = yield f"import re\n{zoom}\nprint(re.findall('operator-[a-z]+', window))\n"
    return f"{len(hits)} {printed.strip()[2:-2]}"  # the printed list is ['operator-zebra']


def _bisected_text(frames: int) -> Text:
    text = text_of("logs", frames)
    text.truth = str(int(frames * 0.618))
    return text


def _bisection(text: Text) -> Conversation:
    day = day_of(int(text.truth))
    yield f"print(len(context))\nprint(context[{RECORD_BYTES - WIDTH}:{RECORD_BYTES}])\n"
    printed = yield _BISECT.format(record=RECORD_BYTES, width=WIDTH, day=day)
    result = numbers(printed)[0]
    yield f"print(context[{result * RECORD_BYTES}:{result * RECORD_BYTES + 3000}])\n"
    return str(result)


# Each record names the term of the next one, and the last record the answer.
_HOPS = ("project Nightjar", "warehouse Alkonost", "captain Veridian", "harbour Quillon", "ledger Obsidian")
_NEXT = (*(f"see {term}" for term in _HOPS[1:]), "the sum was 77421")
_RECORDS = [f"on the record of {term} all is known: {then} !" for term, then in zip(_HOPS, _NEXT, strict=True)]
_hop_text = planted_text("prose", "77421", *zip((0.62, 0.17, 0.83, 0.41, 0.71), _RECORDS, strict=True))


def _multi_hop(text: Text) -> Conversation:
    yield _PEEK
    term = _HOPS[0]
    while True:
        printed = yield f"at = context.find('record of {term}')\nprint(at)\n"
        offset = numbers(printed)[0]
        printed = yield f"print(context[{max(0, offset - 500)}:{offset + 1200}])\n"
        match = re.search(r"all is known: (?:see ([\w ]+?)|the sum was (\d+)) !", printed)
        if match is None:
            return NOT_FOUND
        if match[2]:
            return match[2]
        term = match[1]


def _tail_text(frames: int) -> Text:
    text = text_of("logs", frames)
    text.plant(0.37, "2026-03-01T03:00:00 ERROR disk sdq7 failed txn=ab12cd34 first cause")
    end = text.characters
    text.plant((end - 40 * WIDTH) / end, "2026-03-01T09:00:00 FATAL giving up on txn=ab12cd34")
    text.truth = "sdq7"
    return text


def _tail_first(text: Text) -> Conversation:
    yield "print(len(context))\nprint(context[-3000:])\n"
    printed = yield "print(context[-8000:-3000])\nprint(context[-13000:-8000])\n"
    failed = re.search(r"giving up on (txn=\w+)", printed)
    if failed is None:
        return NOT_FOUND
    printed = yield f"at = context.find('{failed[1]}')\nprint(at)\nprint(context[max(0, at - 800):at + 800])\n"
    result = re.search(r"disk (\w+) failed", printed)
    return result[1] if result else NOT_FOUND


def _random_sampling(text: Text) -> Conversation:
    yield _PEEK
    printed = yield _COUNT_IN_SAMPLES
    counts = dict(zip(("INFO", "DEBUG", "WARN"), numbers(printed), strict=True))
    return max(counts, key=lambda level: counts[level])


def _pass_text(frames: int) -> Text:
    text = text_of("logs", frames)
    for share in (0.11, 0.52, 0.93):
        text.plant(share, "2026-03-01T12:00:00 WARN host-99 req=000000000000 paged")
    text.truth = str(count_in(text, " WARN "))
    return text


def _full_pass(text: Text) -> Conversation:
    yield _PEEK
    printed = yield "print(context.count(' WARN '))\n"
    return printed.strip()


CHAPTERS = 24
_STONES = [number * 37 % 101 for number in range(CHAPTERS)]
_HEADINGS = [f"# Chapter {number}: on the matter of stone {stone}" for number, stone in enumerate(_STONES, 1)]
_HEADING_SHARES = [(number + 0.37) / CHAPTERS for number in range(CHAPTERS)]
_outline_text = planted_text("prose", " ".join(map(str, _STONES)), *zip(_HEADING_SHARES, _HEADINGS, strict=True))


def _outline(text: Text) -> Conversation:
    yield _PEEK
    printed = yield _LIST_CHAPTERS
    starts = [int(line.split()[0]) for line in printed.splitlines()]
    printed = yield _ASK_CHAPTERS.format(starts=starts)
    return printed.strip()


_TREATY = "the treaty of Marrowgate was signed by nine delegates in the end"
_verify_text = planted_text("prose", "nine", (0.44, _TREATY))


def _verify(text: Text) -> Conversation:
    yield _PEEK
    printed = yield "at = context.find('treaty of Marrowgate')\nprint(at)\nprint(context[at - 1000:at + 1000])\n"
    offset = numbers(printed)[0]
    for spread in (2000, 4000, 8000):
        yield f"print(llm_query('How many delegates?\\n' + context[{offset - spread}:{offset + spread}]))\n"
    printed = yield _VOTE.format(low=offset - 60000, high=offset + 20000, offset=offset, end=offset + 200)
    return "nine" if "nine" in printed else NOT_FOUND


_read_words = partial(read_matches, r"code word part \d+ is (\w+)")
_read_stone = partial(read_matches, r"matter of stone (\d+)")
_read_votes = partial(read_matches, r"signed by (\w+) delegates")


FAMILIES = (
    # Asks a sub-model about each chunk, one after another.
    Program("linear chunk scan", _chunk_text, _chunk_scan, most_stall=0.10, most_amplification=1.1, answer=_read_words),
    # Searches for keywords, shows the lines around each match, then reads on from the last.
    Program("grep and zoom", _grep_text, _grep_and_zoom, most_stall=0.30),
    # Asks a sub-model about many chunks at once, in batches.
    Program("batched map-reduce", _map_text, _map_reduce, most_stall=0.10, most_amplification=1.1, answer=_read_words),
    # Looks for a day in a sorted text by halving it.
    Program("bisection", _bisected_text, _bisection, most_stall=1.02, ordered=True),
    # Follows a chain of records, each of which names the next.
    Program("multi-hop search", _hop_text, _multi_hop, most_stall=0.30),
    # Reads the end, then searches for the cause of the failure there.
    Program("tail first", _tail_text, _tail_first, most_stall=0.30),
    # Counts words in slices at random offsets.
    Program("random sampling", planted_text("logs", "INFO"), _random_sampling, most_stall=1.02),
    # Counts a word in the whole text.
    Program("full pass", _pass_text, _full_pass, most_stall=1.02, most_amplification=1.1, full_pass=True),
    # Lists the headings, then asks a sub-model about each chapter.
    Program("outline navigation", _outline_text, _outline, most_stall=0.40, answer=_read_stone),
    # Reads ever wider windows around a match, and lets a sub-model vote on them.
    Program("re-read and verify", _verify_text, _verify, most_stall=0.10, answer=_read_votes),
)
