"""Code as models write it about `context`, and the few blocks whose result differs on a large lazy text, with the way.

The shapes and their frequencies are those of published trajectories: head sniffs, `len`, `split`, `splitlines`, `find`
loops, `lower` and keywords, `re` with flags, f-strings; then what prompts' examples add.
"""

from __future__ import annotations

BLOCKS = {
    # -- a first look
    "head": "print(context[:500])",
    "head, length, type": "print(len(context)); print(type(context)); print(context[:200])",
    "type in an f-string": 'print(f"Context type: {type(context).__name__}, length: {len(context):,}")',
    "tail": "print(context[-500:])",
    "head and tail": 'print(context[:100]); print("..."); print(context[len(context)-100:])',
    "items and middles": "print(context[0], context[-1], context[1234], repr(context[1000:1040]))",
    "repr of the head": "print(repr(context[:300]))",
    "slices with steps": "print(context[100:50:-1], context[:60:7], context[::-1][:20])",
    "is it a str": (
        "if isinstance(context, str):\n    print('text of', len(context))\nelif isinstance(context, (list, tuple)):\n"
        "    print('list')\nelse:\n    print('other', type(context))"
    ),
    "dispatch on types": (
        "def kind(x):\n    if type(x) is dict: return 'dict'\n    if type(x) in (list, tuple): return 'list'\n"
        "    return 'str' if type(x) == str else type(x).__name__\n"
        "print(kind(context), kind([1]), kind({}), kind('s'), kind(3))"
    ),
    "flatten": (
        "def flatten(x):\n    if isinstance(x, str): return [x]\n    return [y for item in x for y in flatten(item)]\n"
        "print(len(flatten([context, ['a', [context]]])))"
    ),
    "hasattr": "print(hasattr(context, 'split'), hasattr(context, 'keys'), hasattr(context, '__len__'))",
    # -- lines
    "split lines": 'lines = context.split("\\n")\nprint(len(lines), lines[0], lines[-1], lines[10:13])',
    "type of the lines": (
        'lines = context.split("\\n")\nprint(type(lines), isinstance(lines, list), type(lines) is list, '
        "type(lines[0]), isinstance(lines, str))"
    ),
    "enumerate lines": (
        'for i, line in enumerate(context.split("\\n")):\n    if "ERROR" in line:\n        print(i, line[:80])\n'
        "        if i > 400: break"
    ),
    "splitlines loop": (
        "hits = 0\nfor line in context.splitlines():\n    if line.startswith('Chapter'):\n        hits += 1\n"
        "        print(line)\nprint(hits)"
    ),
    "splitlines count": "lines = context.splitlines()\nprint(len(lines), lines[5], lines[-3:])",
    "strip and split": 'lines = context.strip().split("\\n")\nprint(len(lines), lines[-1])',
    "filtered lines": (
        'errors = [line for line in context.split("\\n") if "error" in line.lower()]\n'
        "print(len(errors))\nprint(errors[:3])"
    ),
    "window of lines": 'lines = context.split("\\n")\nfor l in lines[100:105]: print(l)\nprint("\\n".join(lines[7:9]))',
    "join kept lines": (
        'kept = [l for l in context.splitlines() if l.startswith("2024-01-03")]\nprint("\\n".join(kept)[:2000])'
    ),
    "counter of names": (
        "from collections import Counter\n"
        'c = Counter(line.split(":")[0] for line in context.split("\\n") if ":" in line)\nprint(c.most_common(5))'
    ),
    # -- split by other separators
    "split by a marker": (
        'docs = context.split("=== Document ===")\nprint(len(docs))\nfor d in docs[:3]: print(len(d), d.strip()[:60])'
    ),
    "after a marker": 'body = context.split("Transcript:")[1].strip()\nprint(len(body), body[:80])',
    "between markers": "print(context.split('Tasks:')[1].split('The secret')[0].strip())",
    "partition": "a, b, c = context.partition('Tasks:')\nprint(len(a), b, len(c), c[:30])",
    "words": "print(len(context.split()), context.split()[:12])",
    "paragraphs": 'paragraphs = context.split("\\n\\n")\nprint(len(paragraphs), max(map(len, paragraphs)))',
    # -- search
    "find": (
        "i = context.find('secret code')\nprint(i, context[i:i+30], context.find('absent'), context.rfind('Chapter'))"
    ),
    "find loop": (
        "pos, found = 0, []\nwhile True:\n    pos = context.find('host-3', pos)\n    if pos == -1: break\n"
        "    found.append(pos)\n    pos += 1\nprint(len(found), found[:5])"
    ),
    "around a hit": (
        "i = context.index('Tasks:')\nstart, end = max(0, i - 100), min(len(context), i + 200)\n"
        "print(context[start:end])"
    ),
    "index of what is absent": "print(context.index('absent'))",
    "keywords in lower case": (
        "text = context.lower()\nfor word in ['error', 'straße', 'ας.', 'absent']:\n"
        "    print(word, text.count(word), text.find(word), word in text)"
    ),
    "in": "print('7291-KX' in context, 'nope' in context, 'SECRET' in context.upper())",
    "count": "print(context.count('ERROR'), context.count('\\n'), context.count('aa'))",
    "rest after a hit": "rest = context[context.find('Transcript:'):]\nprint(len(rest), rest.split('\\n')[1])",
    "starts and ends": "print(context.startswith('Question:'), context.rstrip().endswith('end.'))",
    # -- re
    "findall": "import re\nprint(re.findall(r'value-\\d+', context))",
    "findall with flags": "import re\nprint(re.findall(r'.{0,30}secret.{0,30}', context, re.IGNORECASE))",
    "search with flags": (
        "import re\nm = re.search(r'tasks:(.*?)the secret', context, re.DOTALL | re.IGNORECASE)\n"
        "print(m.group(1).strip() if m else None, m.span())"
    ),
    "search for a label": "import re\nm = re.search(r'label:\\s*(.+)', context)\nprint(m.group(1), m.start())",
    "finditer and m.string": (
        "import re\nfor m in re.finditer('failed', context):\n"
        "    print(m.start(), repr(m.string[max(0, m.start()-20):m.end()+20]))\n    if m.start() > 3000: break"
    ),
    "from re import": (
        "from re import findall, IGNORECASE, compile as rc\nprint(len(findall('error', context, IGNORECASE)))\n"
        "print([m.start() for m in rc(r'^Chapter \\d+$', 8).finditer(context)][:4])"
    ),
    "re under another name": (
        "import re as regex\np = regex.compile(r'Graph:\\s*(\\[.*?\\])', regex.DOTALL)\n"
        "print(p.findall(context)[:2], isinstance(p, regex.Pattern), isinstance(p.search(context), regex.Match))"
    ),
    "re.split": "import re\nparts = re.split(r'=== \\w+ ===', context)\nprint(len(parts), parts[2][:40])",
    "re.sub of a part": "import re\nprint(re.sub(r'\\s+', ' ', context[:400]))",
    "re without a match": "import re\nprint(re.search('absent', context).group())",
    "re with a wrong pattern": "import re\nprint(re.findall('(', context))",
    # -- whole values
    "alias": "text = context\ntext2 = str(context)\nprint(len(text), len(text2), text2[:30], text2 == text)",
    "slices of an alias": "data = str(context)\nprint(data[100:120], data.find('Tasks'), type(data))",
    "chunks": (
        "size = 10_000\nchunks = [context[i:i+size] for i in range(0, len(context), size)]\n"
        "print(len(chunks), [len(c) for c in chunks], chunks[3][:20])"
    ),
    "characters": "n = 0\nfor ch in context:\n    n += ch.isdigit()\nprint(n, list(context[:5]))",
    "set of characters": "print(sorted(set(context))[:20])",
    "whole in an f-string": "prompt = f'Answer from this text:\\n{context}'\nprint(len(prompt))",
    "whole printed": "print(context)",
    "whole printed with more": "print('Text:', context, 3, sep='|', end='<end>\\n')",
    "lines printed": "print(context.splitlines())",
    "mapped to str": "print(list(map(str, [1, None, context[:5]])), [len(x) for x in map(str, [context, 'ab'])])",
    "joined in a prompt": "print(len('\\n\\n'.join(['Question', context])), len(', '.join([context[:3], 'b'])))",
    "concatenated": "q = 'Q: ' + context[:50] + '\\n'\nq += context[-50:]\nprint(q, len(context + 'x'))",
    "replaced": "print(len(context.replace('\\r\\n', '\\n')), context[:300].replace('Ann', 'X'))",
    "wrong operation": "print(context + 1)",
    "wrong attribute": "print(context.nothing)",
    "wrong index": "print(context[10**9])",
    # -- json, io, csv
    "json lines": (
        "import json\nrows = []\nfor line in context.split('\\n'):\n    if line.startswith('{'):\n"
        "        rows.append(json.loads(line))\nprint(len(rows), rows[0], sum(r['id'] for r in rows))"
    ),
    "json of what is no json": (
        "import json\ntry:\n    data = json.loads(context)\n"
        "except json.JSONDecodeError as e:\n    print('no json', e.pos)"
    ),
    "json of the rest": (
        "from json import loads\nimport json.decoder\nstart = context.rfind('{')\n"
        "print(json.decoder.JSONDecoder().raw_decode(context[start:start + 200]))"
    ),
    "dumped in json": "import json\nprint(len(json.dumps({'a': [context, 1]})), json.dumps({'head': context[:20]}))",
    "StringIO lines": (
        "import io\nf = io.StringIO(context)\nprint(repr(f.readline()), f.tell())\n"
        "print(sum(1 for _ in f), repr(f.read()))"
    ),
    "StringIO reads": (
        "from io import StringIO\nf = StringIO(context)\nprint(f.read(40)); f.seek(0); print(len(f.read(5000)))"
    ),
    "csv of a part": (
        "import csv, io\npart = context[context.find('name,age'):context.find('{')]\n"
        "for row in csv.DictReader(io.StringIO(part)): print(row)\nprint(csv.Sniffer().sniff(part).delimiter)"
    ),
    "csv of all": "import csv, io\nrows = list(csv.reader(io.StringIO(context)))\nprint(len(rows), rows[-2])",
    "csv of lines": "import csv\nprint(sum(len(row) for row in csv.reader(context.splitlines())))",
    "csv of characters": "import csv\nprint(list(csv.reader(context))[:9])",
    # -- functions, classes, scopes
    "own function": (
        "def search(text, *words):\n    return [(w, text.find(w)) for w in words if w in text]\n"
        "print(search(context, 'Tasks:', 'secret', 'absent'))"
    ),
    "in a class": (
        "class Doc:\n    kind = type(context).__name__\n    def __init__(self, text):\n        self.text = str(text)\n"
        "    def __len__(self): return len(self.text)\n"
        "print(Doc.kind, len(Doc(context)), isinstance(Doc(context).text, (str, bytes)))"
    ),
    "shadowed str": "str = lambda x: 'mine'\nprint(str(context), str(3))\ndel str\nprint(str(4), len(str(context)))",
    "comprehension over chunks": (
        "print({i // 20_000: type(context[i:i+20_000]).__name__ for i in range(0, len(context), 20_000)})"
    ),
    "asynchronous": (
        "import asyncio\nasync def ask(part):\n    await asyncio.sleep(0)\n    return len(str(part))\n"
        "async def main(): return await asyncio.gather(*(ask(context[i:i+9000]) for i in range(0, 40000, 9000)))\n"
        "print(asyncio.run(main()))"
    ),
}

TOO_LARGE = "ContextTooLarge"

LARGE = {
    "whole in an f-string": TOO_LARGE,
    "json of what is no json": TOO_LARGE,
    "dumped in json": TOO_LARGE,
    "slices with steps": TOO_LARGE,  # context[::-1]
    "search with flags": TOO_LARGE,  # `.*?` over newlines
    "search for a label": TOO_LARGE,  # `\\s*` over newlines
    "re under another name": TOO_LARGE,
    "re.split": TOO_LARGE,
    "concatenated": TOO_LARGE,
    "StringIO reads": TOO_LARGE,  # read(5000)
}
"""Where something real above the limit would be needed: the exception, where `str` gives a value."""

FOREIGN = {"joined in a prompt": ("TypeError", "expected str instance, Monocontext found")}
"""Where C code demands a `str`, at any size: its own exception, and what that says."""

CUT = {
    "whole printed": "print(context[:20_000])",
    "whole printed with more": "print('Text:', context[:20_000], sep='|')",
    "lines printed": "print(repr(context.splitlines())[:20_000])",
}
"""Prints of more than 20,000 characters: what is printed before the note. Lists are cut where they are lazy."""
