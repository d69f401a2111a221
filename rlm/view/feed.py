"""Read the lines of a trajectory while it is being written: its file grows, or is replaced by another run."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from rlm.errors import TrajectoryError
from rlm.trajectory import fields
from rlm.trajectory.fields import Range, union
from rlm.trajectory.trajectory import partial_of
from rlm.view import rows

QUIET_SECONDS = 60  # a run that has written nothing for this long may have been interrupted: most replies take less


@dataclass(slots=True)
class _KnownLines:
    """The lines that have been read of one file, as far as requests need them."""

    head: bytes | None = None  # the first line; if it changes, the file was replaced
    end: int = 0  # the offset in bytes after the last line that was read
    metadata: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    turns: list[tuple[int, int]] = field(default_factory=list)  # offset and length of each turn's line, in bytes
    ranges: list[Range] | None = None  # the characters that cells have read; None while no cell reports any


class RowFeed:
    """The rows of one trajectory. Details are read from the file on request. Safe for use by many threads."""

    def __init__(self, path: Path) -> None:
        """`path`: the file. Raises TrajectoryError if it is missing, or is not a trajectory."""
        self.path = path
        self._lock = threading.Lock()
        self._generation = 0  # how often the file has been replaced
        self._known = _KnownLines()
        self.state()

    def state(self, first: int = 0, generation: int | None = None) -> dict[str, Any]:
        """The metadata, the rows from number `first` on, the number of characters read, and the status of the run.
        `generation`: that of the caller's rows; if the file has been replaced since, `first` counts as 0."""
        with self._lock:
            self._read_new_lines()
            known = self._known
            known.ranges = None if known.ranges is None else union(known.ranges)
            if generation is not None and generation != self._generation:
                first = 0
            return {
                "generation": self._generation, "path": str(self.path), "metadata": rows.metadata(known.metadata),
                "first": first, "rows": known.rows[first:], "live": self._status(),
                "read": None if known.ranges is None else sum(stop - start for start, stop in known.ranges),
            }  # fmt: skip

    def turn(self, number: int, generation: int | None = None) -> dict[str, Any]:
        """The details of turn `number`, from 0; after the last, those of the turn in progress. Raises TrajectoryError
        if the file of `generation` has been replaced."""
        with self._lock:
            self._check_generation(generation)
            if number < len(self._known.turns):
                return rows.turn_details(self._read_line(number))
            records = self._read_partial()
        reply = next((record for record in records if record.get("type") == "reply"), {})
        calls = [rows.call_details(record) for record in records if record.get("type") != "reply"]
        return {**rows.texts(reply, "response", "thinking"), "calls": calls, "under_way": True}

    def prompt(self, number: int, generation: int | None = None) -> list[dict[str, str]]:
        """The messages of turn `number`, from 0; none for a turn in progress. Raises TrajectoryError as `turn` does."""
        with self._lock:
            self._check_generation(generation)
            line = self._read_line(number) if number < len(self._known.turns) else {}
        return [rows.texts(message, "role", "content") for message in rows.objects(line.get("prompt"))]

    def _check_generation(self, generation: int | None) -> None:
        """Read new lines. Raises TrajectoryError if the file of `generation` has been replaced."""
        self._read_new_lines()
        if generation not in (None, self._generation):
            raise TrajectoryError(f"{self.path} was replaced by another run: reload the page")

    def _read_new_lines(self) -> None:
        """Read what has been written since the last time; if the file has been replaced, all of it."""
        try:
            with self.path.open("rb") as file:
                if self._known.head is not None and file.readline() != self._known.head:
                    self._known = _KnownLines()
                    self._generation += 1
                self._add_lines(file)
        except FileNotFoundError:
            raise TrajectoryError(f"there is no trajectory at {self.path}") from None
        except OSError as exc:
            raise TrajectoryError(f"{self.path} cannot be read: {exc.strerror}") from exc

    def _add_lines(self, file: BinaryIO) -> None:
        """Read the complete lines after the last known one. An incomplete last line is left for the next time."""
        known = self._known
        file.seek(known.end)
        for raw in file:
            if not raw.endswith(b"\n"):
                break
            line = self._parse(raw, f"line {len(known.turns) + (1 if known.head is None else 2)}")
            if known.head is None:
                if line.get("type") != "metadata":
                    raise TrajectoryError(f"{self.path} is not a trajectory: its first line is not of type 'metadata'")
                known.head, known.metadata = raw, line
            else:
                known.turns.append((known.end, len(raw)))
                self._add_turn(line)
            known.end += len(raw)
        if known.head is None:
            raise TrajectoryError(f"{self.path} is not a trajectory: it has no complete line yet")

    def _add_turn(self, line: dict[str, Any]) -> None:
        known = self._known
        chars = rows.metadata(known.metadata)["context"]["chars"] or 0
        known.rows.append(rows.turn_row(line, known.rows[-1]["end"] if known.rows else 0.0, chars))
        for block in rows.objects(line.get("code_blocks")):
            if (ranges := fields.ranges(block)) is not None:
                known.ranges = [*(known.ranges or ()), *ranges]

    def _parse(self, raw: bytes, location: str) -> dict[str, Any]:
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise TrajectoryError(f"{self.path} is not a trajectory: {location} is not JSON ({exc})") from None
        if not isinstance(line, dict):
            raise TrajectoryError(f"{self.path} is not a trajectory: {location} is not an object")
        return line

    def _read_line(self, number: int) -> dict[str, Any]:
        offset, length = self._known.turns[number]
        with self.path.open("rb") as file:
            file.seek(offset)
            return self._parse(file.read(length), f"line {number + 2}")

    def _read_partial(self) -> list[dict[str, Any]]:
        """The records of the calls of the turn in progress."""
        partial, data = partial_of(self.path), b""
        results: list[dict[str, Any]] = []
        with suppress(FileNotFoundError):
            data = partial.read_bytes()
        for raw in data[: data.rfind(b"\n") + 1].splitlines():
            try:
                record = self._parse(raw, f"a line of {partial.name}")
            except TrajectoryError:  # the file is being replaced: the next call will find it complete
                break
            if record.get("iteration") == len(self._known.turns) + 1:  # else the turn has its line already
                results.append(record)
        return results

    def _status(self) -> dict[str, Any]:
        """The status of the run: `ended`, `running`, or `quiet` if nothing was written for `QUIET_SECONDS`."""
        last = self._known.rows[-1] if self._known.rows else None
        if last and (last["reason"] or last["answer"] is not None):
            return {"status": "ended"}
        changed_at = self.path.stat().st_mtime
        with suppress(FileNotFoundError):  # the partial file exists only during a turn
            changed_at = max(changed_at, partial_of(self.path).stat().st_mtime)
        silence = max(0.0, time.time() - changed_at)  # in seconds
        records = self._read_partial()
        return {
            "status": "running" if silence < QUIET_SECONDS else "quiet", "silent_seconds": round(silence, 1),
            "replied": any(record.get("type") == "reply" for record in records),
            "calls": sum(1 for record in records if record.get("type") != "reply"),
        }  # fmt: skip
