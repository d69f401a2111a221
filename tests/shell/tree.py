"""A small tree of files, and the same files as documents of a text."""

from __future__ import annotations

import json
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make_tree() -> dict[str, str]:
    """Text by path: some modules and pages of this repository, and made logs and tables."""
    rng = random.Random(7)
    tree = {"README.md": (ROOT / "README.md").read_text()}
    for path in sorted((ROOT / "docs").glob("*.md")):
        tree[f"docs/{path.name}"] = path.read_text()
    for path in sorted((ROOT / "monocontext").glob("*.py")) + sorted((ROOT / "monocontext/stores").glob("*.py")):
        tree[f"src/{path.relative_to(ROOT / 'monocontext')}"] = path.read_text()
    levels = ("INFO", "INFO", "INFO", "WARN", "ERROR")
    tree["logs/app.log"] = "".join(
        f"2026-01-{1 + i // 400:02} 10:{i % 60:02}:00 {rng.choice(levels)} user={rng.randrange(40)} "
        f"path=/{rng.choice('abc')} status={rng.choice((200, 404, 500))} ms={rng.randrange(900)}\n"
        for i in range(3000)
    )
    tree["logs/old.log"] = "2025-12-31 23:59:59 ERROR user=1 path=/needle status=500 ms=1\n"
    rows = (f"name{i},{rng.choice(['red', 'green', 'blue'])},{rng.randrange(100)}\n" for i in range(200))
    tree["data/table.csv"] = "name,colour,count\n" + "".join(rows)
    people = [{"name": f"Ann {i}", "age": 20 + 3 * i} for i in range(12)]
    tree["data/people.json"] = json.dumps(people, indent=1) + "\n"
    tree["data/unicode.txt"] = "café\nÉcole\n日本語 text\nabc\naéc\n"
    tree["data/empty.txt"] = ""
    tree["data/no_newline.txt"] = "begin\na needle\nthe end"
    tree["data/with space.txt"] = "a name with a space\n"
    tree["data/repeated.txt"] = "1\n1\n2\n3\n3\n3\n"
    tree["data/numbers.txt"] = "3\n10\n7\n1\n25\n"
    return dict(sorted(tree.items()))
