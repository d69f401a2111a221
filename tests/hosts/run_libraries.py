"""Libraries that read files, over `context.file()`: pandas, with each of its parsers that reads text."""

from __future__ import annotations

import csv
import io
import json
from itertools import islice

import pandas

from monocontext import Monocontext, publish

ROWS = [[i, f"name {i}", 'has "quotes",\nand a line end' if i % 7 == 0 else f"é{i % 5}"] for i in range(20_000)]


def main() -> None:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["id", "name", "note"], *ROWS])
    publish(out.getvalue(), "memory://table", frame_bytes=10_000)
    with Monocontext.open("memory://table") as context:
        for engine in ("c", "python"):
            table = pandas.read_csv(context.file(), engine=engine)
            assert table.values.tolist() == ROWS, engine
        head = next(pandas.read_csv(context.file(), chunksize=50))
        assert head.values.tolist() == ROWS[:50]
        assert list(islice(csv.reader(context.file()), 1, 101)) == [[str(cell) for cell in row] for row in ROWS[:100]]
    publish("".join(json.dumps({"id": row[0], "note": row[2]}) + "\n" for row in ROWS), "memory://lines")
    with Monocontext.open("memory://lines") as context:
        table = pandas.read_json(context.file(), lines=True)
        assert table["note"].tolist() == [row[2] for row in ROWS]
        parts = pandas.read_json(context.file(), lines=True, chunksize=1000)
        assert sum(len(part) for part in parts) == len(ROWS)
    print(f"pandas {pandas.__version__}: read_csv, read_csv in chunks, read_json of lines, csv")


if __name__ == "__main__":
    main()
