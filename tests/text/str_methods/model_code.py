"""Thirty blocks of the kind that models write to look at `context`, and a text for them to look at.

What they do, and how often, follows published trajectories: slices first, then lengths, splits, searches, `lower`, `re`.
"""

from __future__ import annotations

from collections.abc import Iterator


def pieces(characters: int) -> Iterator[str]:
    """A text of transcripts, labelled questions and log lines; of about so many characters, the same every time."""
    made = number = 0
    yield "  \nArchive of the Café — begun 2026\n\n"
    while made < characters:
        number += 1
        piece = _chapter(number)
        made += len(piece)
        yield piece
    yield f"Final answer: {number} chapters.\n--- end of archive ---\n  "


def _chapter(number: int) -> str:
    lines = [
        f"Chapter {number}\r\n" if number % 50 == 0 else f"Chapter {number}\n",
        f"Date: 2026-{number % 12 + 1:02}-{number % 28 + 1:02}\n",
    ]
    lines += [
        f"user_{(number * 7 + i) % 13}: the répétition of line {i} costs {(number * i) % 97} euros.\n"
        for i in range(12)
    ]
    lines.append(f"Question: Who paid {number % 97} euros? || Label: {('human', 'entity', 'place')[number % 3]}\n")
    if number % 101 == 0:
        lines.append(f"ERROR host-{number} failed: retry in {number % 60} ms\n")
    lines.append(f"Transcript: [{number}, {number + 1},\n {number + 2}] NAÏVE end\n\n")
    return "".join(lines)


BLOCKS = {
    "length and head": """
        print(len(context))
        print(context[:500])
    """,
    "type of a slice, tail": """
        print(type(context[:10]).__name__, context[-300:])
    """,
    "lines": """
        lines = context.split("\\n")
        print(len(lines), lines[0], lines[5:9], lines[-3:])
    """,
    "stripped lines": """
        lines = context.strip().split("\\n")
        print(len(lines))
        for i, line in enumerate(lines[:20]):
            print(i, line)
    """,
    "lines that hold a word": """
        found = [line for line in context.splitlines() if "Label: place" in line]
        print(len(found), found[:3], found[-1])
    """,
    "numbered lines": """
        for i, line in enumerate(context.split("\\n")):
            if line.startswith("ERROR"):
                print(i, line)
                break
    """,
    "find and look around": """
        at = context.find("ERROR host-303")
        print(at, context[max(0, at - 100):at + 200])
    """,
    "every occurrence": """
        at, places = context.find("ERROR"), []
        while at != -1 and len(places) < 5:
            places.append(at)
            at = context.find("ERROR", at + 1)
        for place in places:
            print(place, repr(context[place - 20:place + 50]))
    """,
    "find, lower-cased": """
        lowered = context.lower()
        at = lowered.find("naïve end")
        print(at, lowered[at - 40:at + 10], context[at:at + 9])
    """,
    "count, lower-cased": """
        lowered = context.lower()
        for word in ("error", "naïve", "user_3", "no such word"):
            print(word, lowered.count(word))
    """,
    "words in": """
        for word in ("host-202", "Café", "host-0 ", "répétition"):
            print(word, word in context, word.upper() in context.upper())
    """,
    "chapters": """
        chapters = context.split("Chapter ")
        print(len(chapters))
        print(chapters[1][:80].strip(), "|", chapters[7].strip()[-60:])
    """,
    "chunks by range": """
        size = 40000
        total = 0
        for i in range(0, min(len(context), 400000), size):
            chunk = context[i:i + size]
            total += chunk.count("euros")
        print(total)
    """,
    "ten chunks": """
        step = len(context) // 10
        for i in range(10):
            chunk = context[i * step:i * step + 1000]
            print(i, len(chunk), chunk.strip().splitlines()[1])
    """,
    "labels counted": """
        from collections import Counter
        labels = Counter()
        for line in context.split("\\n"):
            if "|| Label: " in line:
                labels[line.split("|| Label: ")[1].strip()] += 1
        print(labels.most_common())
    """,
    "who pays how much": """
        totals = {}
        for line in context.splitlines():
            if line.startswith("user_"):
                name, rest = line.split(": ", 1)
                totals[name] = totals.get(name, 0) + int(rest.split("costs ")[1].split()[0])
        print(sorted(totals.items(), key=lambda item: -item[1])[:4])
    """,
    "partition": """
        head, sep, tail = context.partition("Final answer:")
        print(len(head), repr(sep), tail.strip().splitlines()[0])
    """,
    "from the end": """
        at = context.rfind("Question:")
        print(context[at:at + 60], context.endswith("  "), context.rstrip()[-23:])
    """,
    "first words": """
        words = context.split()
        print(words[:12])
    """,
    "replace and look": """
        clean = context.replace("\\r\\n", "\\n").replace("—", "-")
        print(clean[:200])
        print(clean.find("Chapter 50"), clean.count("-") - context.count("-"))
    """,
    "letters": """
        from collections import Counter
        print(Counter(context[:20000].lower()).most_common(5), context.count("é"))
    """,
    "a section between marks": """
        start = context.index("Chapter 99\\n")
        stop = context.index("Chapter 100", start)
        section = context[start:stop]
        print(section.strip()[:300], len(section.splitlines()))
    """,
    "a missing mark": """
        try:
            context.index("Chapter zero")
        except ValueError as error:
            print("not found:", error)
        print(context.find("Chapter zero"))
    """,
    "numbers, by re": """
        print(re.findall(r"ERROR host-(\\d+)", context)[:10])
    """,
    "search, by re": """
        match = re.search(r"failed:\\s*(.+)", context)
        print(match.start(), match.group(1), context[match.start() - 10:match.end()])
    """,
    "around a word, by re": """
        for match in list(re.finditer(r".{0,30}naïve.{0,10}", context, re.IGNORECASE))[:3]:
            print(match.span(), match.group(0))
    """,
    "between marks, by re": """
        print(re.search(r"Transcript:\\s*(\\[.*?\\])", context, re.DOTALL).group(1))
    """,
    "a list in the text": """
        import ast
        at = context.find("Transcript: ") + len("Transcript: ")
        print(sum(ast.literal_eval(context[at:context.find("]", at) + 1])))
    """,
    "a prompt from parts": """
        parts = [context[i:i + 200] for i in (0, 1000, 5000)]
        prompt = f"Summarize: {context[:300]}\\n" + "\\n---\\n".join(parts)
        print(len(prompt), prompt[-100:])
    """,
    "a block's own function": """
        def windows(text, size, overlap):
            at = 0
            while at < len(text) and at < 50000:
                yield text[at:at + size]
                at += size - overlap
        print([(len(w), w[:12]) for w in windows(context, 9000, 500)])
    """,
}
assert len(BLOCKS) == 30

WANT_IT_WHOLE = {
    "the whole in a prompt": 'prompt = f"Answer from this: {context}"',
    "the whole printed": "print(context)",
    "the whole as str": "text = str(context)",
    "the whole as a key": "seen = {context: 1}",
    "the whole joined": 'prompt = "%s and %s" % (context, 1)',
}
"""What becomes one `str`: an error that says what to write, above the limit."""
