"""Blocks as models write them, after the shapes and frequencies of published trajectories and prompts."""

from __future__ import annotations

from textwrap import dedent

# What these read does not depend on the text: hints must say exactly what is read.
EXACT = {
    "length and head": "print(len(context))\nprint(context[:500])",
    "head, type, tail": "print(type(context), len(context)); print(context[:2000]); print(context[-2000:])",
    "head in an f-string": 'print(f"{len(context):,} characters; starts with {context[:200]!r}")',
    "literal zoom": "print(context[9200:9900])",
    "zooms": "print(context[1_000:5_000])\nprint('---')\nprint(context[250000:253_000])",
    "tail by length": "n = len(context)\nprint(context[n - 1000:])\nprint(context[n-5000:n-4000])",
    "items": "print(context[0], context[-1], context[12345])",
    "negative both": "print(context[-3000:-2000])",
    "middle": "mid = len(context) // 2\nprint(context[mid - 2000:mid + 2000])",
    "quarters": """
        size = len(context)
        for frac in (0.25, 0.5, 0.75):
            pos = int(size * frac)
            print(pos, context[pos:pos + 300])
    """,
    "tenths": """
        step = len(context) // 10
        samples = [context[i * step : i * step + 500] for i in range(10)]
        print("\\n----\\n".join(samples))
    """,
    "chunks of 100K": """
        CHUNK = 100_000
        chunks = [context[i:i + CHUNK] for i in range(0, len(context), CHUNK)]
        print(len(chunks))
        answers = llm_query_batched([f"Summarise:\\n{c}" for c in chunks])
        print(answers)
    """,
    "chunk loop": """
        chunk_size = 50000
        summaries = []
        for i in range(0, len(context), chunk_size):
            chunk = context[i:i + chunk_size]
            summaries.append(llm_query(f"Look for the answer in this part:\\n{chunk}"))
        print("\\n".join(summaries))
    """,
    "many small chunks": """
        parts = []
        for i in range(0, len(context), 1000):
            parts.append(context[i:i+1000])
        print(len(parts), parts[0][:20])
    """,
    "overlapping chunks": """
        size, overlap = 20_000, 2_000
        pieces = []
        for start in range(0, len(context), size - overlap):
            pieces.append(context[start:start + size])
        print(len(pieces))
    """,
    "overlap to both sides": """
        W = 10000
        for i in range(0, len(context), W):
            part = context[max(0, i - 500):min(len(context), i + W + 500)]
            llm_query(part)
    """,
    "while with +=": """
        i = 0
        out = []
        while i < len(context):
            out.append(llm_query(context[i:i + 80_000]))
            i += 80_000
    """,
    "while with min": """
        start = 0
        n = len(context)
        parts = []
        while start < n:
            end = min(start + 7_500, n)
            parts.append(context[start:end])
            start = end
        print(len(parts))
    """,
    "while until empty": """
        pos = 0
        while True:
            piece = context[pos:pos + 30_000]
            if not piece:
                break
            llm_query(piece)
            pos += len(piece)
    """,
    "while backward": """
        end = len(context)
        while end > 0:
            begin = max(0, end - 25_000)
            print(context[begin:end][:50])
            end = begin
    """,
    "range backward": """
        for end in range(len(context), 0, -40_000):
            llm_query(context[max(0, end - 40_000):end])
    """,
    "n parts": """
        parts = 8
        size = len(context) // parts
        for k in range(parts):
            lo = k * size
            hi = (k + 1) * size if k < parts - 1 else len(context)
            print(k, llm_query(context[lo:hi]))
    """,
    "hundred parts": """
        num_chunks = 100
        chunk_size = len(context) // num_chunks
        chunks = []
        for i in range(num_chunks):
            start = i * chunk_size
            end = start + chunk_size if i < num_chunks - 1 else len(context)
            chunks.append(context[start:end])
        print([len(c) for c in chunks][-3:])
    """,
    "ceil division": """
        import math
        size = 70_000
        count = math.ceil(len(context) / size)
        for k in range(count):
            print(k, len(context[k*size:(k+1)*size]))
    """,
    "positions": "for pos in [100, 2000, 77_000]:\n    print(pos, repr(context[pos:pos + 500]))",
    "batches of chunks": """
        CHUNK = 10_000
        offsets = list(range(0, len(context), CHUNK))
        for b in range(0, len(offsets), 20):
            batch = offsets[b:b + 20]
            prompts = [f"Extract names:\\n\\n{context[o:o + CHUNK]}" for o in batch]
            llm_query_batched(prompts)
    """,
    "head and tail": """
        preview = context[:30_000] + "\\n...\\n" + context[-3_000:]
        print(llm_query("What is this?\\n" + preview))
    """,
    "alias": "text = context\nprint(text[:1000])\nprint(text[5000:6000])",
    "alias through str": "doc = str(context)\nprint(len(doc), doc[300:400])",
    "alias by type": """
        if isinstance(context, str):
            text = context
        else:
            text = "\\n".join(str(c) for c in context)
        print(text[:3000])
    """,
    "conditional expression": "t = context if isinstance(context, str) else str(context)\nprint(t[100:900])",
    "size decides": """
        if len(context) > 500_000:
            print("large"); print(context[:5000])
        else:
            print(context)
    """,
    "lower alias": 't = context.lower()\nprint(t.find("error"), t.count("timeout"), "section" in t)',
    "find": 'print(context.find("ERROR"), context.rfind("ERROR"), context.count("Timeout"))',
    "find with bounds": 'print(context.find("ERROR", 5000, 900_000), context.rfind("## Section", 0, 500_000))',
    "in": 'print("ERROR" in context, "nowhere at all" not in context)',
    "keywords, lower-cased": """
        keywords = ["error", "timeout", "refused", "quota", "disk"]
        for kw in keywords:
            idx = context.lower().find(kw.lower())
            print(kw, idx)
    """,
    "keywords in a comprehension": """
        terms = ("host-77", "host-154", "user_3")
        hits = {t: context.find(t) for t in terms}
        counts = {term: context.count(term) for term in terms}
        print(hits, counts)
    """,
    "findall": 'import re\nprint(re.findall(r"ERROR host-(\\d+)", context)[:10])',
    "search with flags": 'import re\nprint(re.search(r"timeout after\\s+(\\d+)", context, re.IGNORECASE | re.DOTALL))',
    "flags by keyword": 'import re\nprint(len(re.findall("section", context, flags=re.I)))',
    "from re": "from re import findall, IGNORECASE, S\nprint(findall('error.*after', context, IGNORECASE | S)[:2])",
    "number of pieces": 'docs = context.split("## Section")\nprint(len(docs), len(docs[0]))',
    "words": "print(len(context.split()))",
    "compiled": """
        import re
        pat = re.compile(r"^## Section (\\d+)$", re.M)
        for m in pat.finditer(context):
            print(m.group(1))
    """,
    "patterns in a list": """
        import re
        for p in [r"ERROR.*", r"## .+", r"user_12\\b"]:
            print(p, len(re.findall(p, context)))
    """,
    "regex on a slice": 'import re\nprint(re.findall(r"\\d+", context[1000:3000]))',
    "lines": 'lines = context.split("\\n")\nfor l in lines[10:15]: print(l)\nprint(lines[500])',
    "splitlines slice": "lines = context.splitlines()\nprint(lines[:20])\nprint(lines[-5:])",
    "lines attribute": "print(len(context.lines), context.lines[100:110], context.lines[7])",
    "line loop": """
        total = 0
        for line in context.splitlines():
            if line.startswith("ERROR"):
                total += 1
        print(total)
    """,
    "numbered lines": """
        found = []
        for i, line in enumerate(context.split("\\n")):
            if "Section" in line:
                found.append((i, line))
        print(found[:5])
    """,
    "filtered lines": 'errs = [l for l in context.strip().split("\\n") if "ERROR" in l]\nprint(len(errs))',
    "counter of lines": """
        from collections import Counter
        c = Counter(line.split(":")[0] for line in context.splitlines())
        print(c.most_common(3))
    """,
    "chunks method": "for piece in context.chunks(90_000):\n    llm_query(piece)",
    "whole in a prompt": 'print(llm_query(f"Answer from this: {context}"))',
    "whole by +": 'answer = llm_query("Summarise: " + context)',
    "split at headers": 'parts = context.split("## Section")\nprint(parts[3][:100])',
    "two reads a turn": """
        for i in range(0, len(context), 50_000):
            head = context[i:i + 200]
            tail = context[i + 49_000:i + 50_000]
            print(head, tail)
    """,
    "every tenth chunk": """
        n = 0
        for i in range(0, len(context), 4_000):
            if n % 10 == 0:
                print(context[i:i + 400])
            n += 1
            if n >= 60:
                break
    """,
    "guarded with try": """
        try:
            print(context[600_000:601_000])
            value = int("12")
        finally:
            print(context[:10])
    """,
    "slices of slices": "head = context[:50_000]\nprint(head[:100], head[-100:], len(head[10:20]))",
    "answer dict": """
        evidence = context[44_000:46_000]
        answer = {"content": llm_query(evidence), "ready": True}
    """,
    "steps": "print(context[1000:2000:10], context[500:100:-1])",
}
EXACT = {name: dedent(code).strip("\n") for name, code in EXACT.items()}

# What these read is not followed, as it wins too little: hints must say nothing that is not read.
NOT_FOLLOWED = {
    "enumerated bounds": """
        spans = [(0, 1000), (5000, 6000), (120_000, 121_000)]
        for n, (a, b) in enumerate(spans, 1):
            print(n, context[a:b])
    """,
    "set of positions": "for pos in {100: 'a', 9000: 'b'}:\n    print(context[pos-50:pos+50])",
    "named sections": """
        sections = {"intro": (0, 4000), "methods": (4000, 9000), "end": (900_000, 905_000)}
        for name, (a, b) in sections.items():
            print(name, llm_query(context[a:b]))
    """,
    "zip of bounds": """
        starts = list(range(0, 50_000, 10_000))
        ends = [s + 300 for s in starts]
        for s, e in zip(starts, ends):
            print(context[s:e])
    """,
    "constants in f-strings": """
        host = 154
        prefix = "host"
        print(context.find(f"{prefix}-{host} failed"))
        for k in (77, 231):
            print(f"ERROR {prefix}-{k}" in context)
    """,
    "alternatives": """
        import re
        words = ["error", "time-out (hard)", "refused"]
        pattern = "|".join(re.escape(w) for w in words)
        print(len(re.findall(pattern, context, re.I)))
    """,
    "word pattern": 'import re\nname = "user_3"\nprint(len(re.findall(rf"\\b{name}\\b", context)))',
    "last lines first": "for line in reversed(context.splitlines()):\n    pass",
    "partition": 'before, _, after = context.partition("## Section 9")\nprint(len(before))',
    "bounds first": """
        bounds = [(i, min(i + 5_000, len(context))) for i in range(0, len(context), 5_000)]
        print(len(bounds))
        for s, e in bounds:
            llm_query(context[s:e])
    """,
    "a function": """
        def show(start, width=400):
            return context[start:start + width]
        print(show(1000))
        print(show(2000, width=50), show(start=7))
    """,
    "function over a list": """
        def ask(span):
            a, b = span
            return llm_query(context[a:b])
        answers = list(map(ask, [(0, 10_000), (10_000, 20_000), (20_000, 30_000)]))
    """,
    "generator function": """
        def windows(text, size, step):
            for i in range(0, len(text), step):
                yield i, text[i:i + size]
        for at, part in windows(context, 20_000, 15_000):
            llm_query(part)
    """,
    "threads": """
        from concurrent.futures import ThreadPoolExecutor
        def work(i):
            return llm_query(context[i:i + 125_000])
        with ThreadPoolExecutor(max_workers=8) as pool:
            results = list(pool.map(work, range(0, len(context), 125_000)))
    """,
    "submitted": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as ex:
            futures = [ex.submit(lambda a, b: context[a:b], s, s + 900) for s in (0, 30_000, 60_000)]
            print([f.result()[:10] for f in futures])
    """,
    "starts and ends": 'print(context.startswith("line 1"), context.endswith("euros"))',
}
NOT_FOLLOWED = {name: dedent(code).strip("\n") for name, code in NOT_FOLLOWED.items()}

# Where these read depends on what they find: hints must hold what is certain, and that must be right.
DEPENDENT = {
    "zoom to a hit": (
        """
        print(context[:1000])
        idx = context.find("ERROR")
        print(context[idx - 500:idx + 1200])
        print(context[-700:])
        """,
        "Ranges(0, 1000) Needle(ERROR) Ranges(999003, 700)",
    ),
    "search loop": (
        """
        pos = context.find("## Section")
        while pos != -1:
            print(context[pos:pos + 100])
            pos = context.find("## Section", pos + 1)
        print(context[3000:3100])
        """,
        "Needle(## Section) Needle(## Section) Ranges(3000, 100)",
    ),
    "hits of a pattern": (
        """
        import re
        for m in re.finditer(r"timeout", context, re.I):
            print(context[max(0, m.start() - 300):m.end() + 300])
            break
        print(context[10:20])
        """,
        "Pattern(timeout) Ranges(10, 10)",
    ),
    "only if found": (
        """
        if "ERROR" in context:
            print(context[5000:6000])
        else:
            print(context[7000:8000])
        """,
        "Needle(ERROR) Ranges(5000, 1000) Ranges(7000, 1000)",
    ),
    "stops when found": (
        """
        for i in range(0, len(context), 10_000):
            chunk = context[i:i + 10_000]
            if "host-770" in chunk:
                print(chunk[:50])
                break
        """,
        "Ranges(0, 10000, x99) Ranges(990000, 9703)",
    ),
    "bisection": (
        """
        lo, hi = 0, len(context)
        while hi - lo > 1000:
            mid = (lo + hi) // 2
            if context[mid:mid + 200].find("9") > 100:
                lo = mid
            else:
                hi = mid
        """,
        "Ranges(499851, 200)",
    ),
    "keyword windows": (
        """
        for kw in ["error", "timeout"]:
            p = context.lower().find(kw)
            if p >= 0:
                print(kw, context[max(0, p - 200):p + 800])
        """,
        "Needle(error) Needle(timeout)",
    ),
}
DEPENDENT = {name: (dedent(code).strip("\n"), wanted) for name, (code, wanted) in DEPENDENT.items()}
