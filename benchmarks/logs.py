"""Generate logs of any size; a seed gives the same bytes on every machine.

Each block is computed from the seed and its number alone. The logs resemble the samples of logpai/loghub: the median
line has 97 to 140 characters, the ten most frequent templates make 70 to 100 % of the lines, templates come in runs,
neighbouring lines share request ids (UUIDs), lines come in bursts, timestamps never go back, and there are some
tracebacks. All of it is ASCII, so a character is a byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 2 << 20
NEEDLE = "incident-4711 volume vol-93 detached"
_INCIDENT_SEED = 6
_BLOCK_SECONDS = 40
_EPOCH_SECONDS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
_LINES_A_REQUEST = 4
_STICKY = 0.3
"""The probability that a line repeats the template of the line before."""
_TRACEBACK = 0.004
"""The share of entries that are tracebacks."""

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.uint64]

# Holes: {t} time, {id} the request's UUID, {d5} a number of 5 digits, {x12} 12 hexadecimal digits, {w7} a word of 7
# letters, {ip} an address. The widths are fixed, so that the lines of a template are a matrix.
_TEMPLATES = r"""
{t} INFO  access {id} GET /api/v2/{w7}/{d6} 200 {d5} {d2}ms
{t} DEBUG cache {id} hit {w6}:{x12} age {d4} s
{t} INFO  access {id} POST /api/v2/{w8}/{d6}/{w6} 201 {d4} {d3}ms
{t} INFO  dfs.DataNode: Receiving block blk_{d9}{d9} src: /{ip}:{d5} dest: /{ip}:50010
{t} DEBUG db {id} select {w7} where id={d7}: {d2} rows in {d2}.{d3} ms
{t} INFO  dfs.DataNode: PacketResponder {d1} for block blk_{d9}{d9} terminating
{t} DEBUG cache {id} miss {w6}:{x12}, loading from shard {d2}
{t} INFO  auth {id} user {w8}{d3} accepted from {ip} port {d5}
{t} INFO  [gc] heap {d4} MB of {d4} MB, pause {d2}.{d2} ms, promoted {d6} objects
{t} INFO  queue topic={w8} partition={d2} offset={d9} lag={d3} {id}
{t} WARN  upstream {id} slow answer of {w7}-service: {d4} ms (limit {d3})
{t} WARN  upstream {id} retry {d1} of {w7}-service: connection reset by {ip}
{t} ERROR payments {id} declined code={d3} amount={d4}.{d2} account={x16}
{t} ERROR db.pool {id} timeout after {d4} ms, {d2} of {d2} connections in use
{t} INFO  cluster node-{d3} joined at {ip}:{d4}, {d2} members, epoch {d6}
{t} INFO  cluster node-{d3} left: no heartbeat for {d5} ms
{t} DEBUG http {id} connect {w7}-service.{w6}.svc.cluster.local:{d4} tls=1.3
{t} INFO  jobs {w8}-{x8} finished in {d3}.{d1} s, exit 0
{t} INFO  jobs {w8}-{x8} started by {w7}
{t} WARN  storage device sd{w1} sector {d9} read error corrected, {d2} so far
{t} DEBUG flags {id} {w8}_{w6} is off for tenant {d5}
{t} INFO  outbox queued <{x16}@{w7}.example> to {w8}@{w6}.example {id}
{t} INFO  audit user={w8}{d3} action={w6}.{w7} object={id} outcome=allowed signature={x32}
{t} DEBUG index {id} segment _{x4} merged, docs={d6} deleted={d4}
{t} ERROR access {id} GET /api/v2/{w7}/{d6} 500 {d3} {d4}ms
{t} INFO  access {id} DELETE /api/v2/{w7}/{d6} 204 0 {d2}ms
{t} WARN  auth failed password for invalid user {w8} from {ip} port {d5} ssh2
{t} INFO  config reload /etc/{w7}/{w6}.yaml revision {x8}, {d2} keys changed
{t} DEBUG flow {ip}:{d5} -> {ip}:{d4} packets={d5} bytes={d8} flags={x2}
{t} WARN  time offset {d3} us from {ip}, stratum {d1}
""".strip("\n").split("\n")

_TRACEBACKS = [
    """{t} ERROR app {id} unhandled exception
Traceback (most recent call last):
  File "/srv/app/{w7}/handler.py", line {d3}, in dispatch
    return self.{w8}(request, timeout={d2})
  File "/srv/app/{w7}/{w6}.py", line {d3}, in {w8}
    row = pool.fetch({w6}_id, retry={d1})
  File "/usr/lib/python3.12/site-packages/dbpool/core.py", line {d3}, in fetch
    raise PoolTimeout(f"no connection for {{key}} within {{limit}} s")
dbpool.errors.PoolTimeout: no connection for {w7}:{d7} within {d2} s""",
    """{t} ERROR orders {id} processing failed
java.lang.IllegalStateException: order {d8} is in state {w7}
\tat com.example.orders.OrderService.{w8}(OrderService.java:{d3})
\tat com.example.orders.OrderQueue.take(OrderQueue.java:{d3})
\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)
\tat java.base/java.lang.Thread.run(Thread.java:833)
Caused by: java.net.SocketTimeoutException: {w7}-service at {ip}:{d4} silent for {d5} ms
\tat com.example.net.Channel.read(Channel.java:{d3})
\t... {d2} more""",
]

_HOLE = re.compile(r"\{(t|id|ip|[dxw]\d+)\}")
_FILLER = b" DEBUG [pad] runtime.memory page map "
_WIDTHS = {"t": 24, "id": 36, "ip": 14}
_SYLLABLES = re.findall(r"\w+", "ba co di fe gu ha jo ki la me no pa qui ro su ta ve wi xa yo zen mar lin tor des")
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_TENS = np.array([10**power for power in range(19, -1, -1)], np.uint64)


@dataclass(frozen=True, slots=True)
class _Hole:
    kind: str
    at: int
    width: int


@dataclass(frozen=True, slots=True)
class _Template:
    row: Bytes
    """The line with its newline, and zeros in the holes."""
    holes: tuple[_Hole, ...]


def make_logs(size_bytes: int, seed: int) -> Iterator[bytes]:
    """A log in blocks of whole lines, in order; the last block may be shorter."""
    for number in range(-(-size_bytes // BLOCK_BYTES)):
        size = min(BLOCK_BYTES, size_bytes - number * BLOCK_BYTES)
        data = _block(seed, number)
        yield data if size == BLOCK_BYTES else data[: size - 1] + b"\n"


def make_incident(size_bytes: int, share: float) -> bytes:
    """A log with one more line, which holds NEEDLE, after that share of it."""
    data = b"".join(make_logs(size_bytes, _INCIDENT_SEED))
    at = data.index(b"\n", int(share * size_bytes)) + 1
    return data[:at] + f"2026-03-01T12:00:00 ERROR {NEEDLE}\n".encode() + data[at:]


def _block(seed: int, number: int) -> bytes:
    dice = _dice(seed, number)
    uuids = _uuids(dice, BLOCK_BYTES // 300)
    kinds = _kinds(dice)
    sizes = np.array([len(template.row) for template in _templates()])[kinds]
    ends = np.cumsum(sizes)
    filler_bytes = len(_FILLER) + _WIDTHS["t"]
    count = int(np.searchsorted(ends, BLOCK_BYTES - filler_bytes - 2))
    kinds, ends, starts = kinds[:count], ends[:count], (ends - sizes)[:count]
    times = _times(dice, number, count + 1)
    requests = np.arange(count) // _LINES_A_REQUEST + (_raw(dice, count) % np.uint64(3)).astype(np.int64)
    out = np.empty(BLOCK_BYTES, np.uint8)
    order = np.argsort(kinds, kind="stable")
    borders = np.searchsorted(kinds[order], np.arange(len(_templates()) + 1))
    for kind, template in enumerate(_templates()):
        lines = order[borders[kind] : borders[kind + 1]]
        if len(lines):
            rows = _rows(template, dice, times[lines], uuids[requests[lines]])
            out[starts[lines][:, None] + np.arange(len(template.row))] = rows
    left = BLOCK_BYTES - int(ends[-1])
    digits = _hex(dice, 1, left - filler_bytes - 1)[0].tobytes()
    return b"".join([out[: ends[-1]].tobytes(), times[-1].tobytes(), _FILLER, digits, b"\n"])


def _rows(template: _Template, dice: np.random.Philox, times: Bytes, uuids: Bytes) -> Bytes:
    """The lines of one template, a row each."""
    rows = np.tile(template.row, (len(times), 1))
    for hole in template.holes:
        part = rows[:, hole.at : hole.at + hole.width]
        if hole.kind == "t":
            part[:] = times
        elif hole.kind == "id":
            part[:] = uuids
        elif hole.kind == "x":
            part[:] = _hex(dice, len(rows), hole.width)
        elif hole.kind == "w":
            words = _words(hole.width)
            part[:] = words[(_raw(dice, len(rows)) % np.uint64(len(words))).astype(np.int64)]
        elif hole.kind == "ip":
            part[:] = np.frombuffer(b"10.000.000.000", np.uint8)
            for at in (3, 7, 11):
                part[:, at : at + 3] = _digits(_raw(dice, len(rows)) % np.uint64(156) + np.uint64(100), 3)
        else:
            part[:] = _digits(_raw(dice, len(rows)), hole.width)
            part[:, 0] |= 1  # no number begins with 0
    return rows


def _times(dice: np.random.Philox, number: int, count: int) -> Bytes:
    """`2026-03-01T00:00:00.000Z`, a row each, within the seconds of this block; lines come in bursts."""
    gaps = _raw(dice, count) % np.uint64(64)
    quiet = _raw(dice, count) % np.uint64(100) < 3
    since = np.cumsum(np.where(quiet, gaps * np.uint64(40), gaps // np.uint64(8))).astype(np.uint64)
    millis = since * np.uint64(1000 * _BLOCK_SECONDS - 1) // (since[-1] + np.uint64(1))
    first = _EPOCH_SECONDS + number * _BLOCK_SECONDS
    seconds = [datetime.fromtimestamp(first + i, UTC).strftime("%Y-%m-%dT%H:%M:%S.") for i in range(_BLOCK_SECONDS)]
    table = np.frombuffer("".join(seconds).encode(), np.uint8).reshape(_BLOCK_SECONDS, 20)
    rows = np.empty((count, 24), np.uint8)
    rows[:, :20] = table[(millis // np.uint64(1000)).astype(np.int64)]
    rows[:, 20:23] = _digits(millis % np.uint64(1000), 3)
    rows[:, 23] = ord("Z")
    return rows


def _kinds(dice: np.random.Philox) -> NDArray[np.int64]:
    """The template number of each line, in runs; earlier templates are more frequent."""
    count = BLOCK_BYTES // 90
    plain = len(_TEMPLATES)
    weights = np.concatenate([1 / (np.arange(plain) + 1.0) ** 1.35, np.zeros(len(_TRACEBACKS))])
    weights *= (1 - _TRACEBACK) / weights.sum()
    weights[plain:] = _TRACEBACK / len(_TRACEBACKS)
    steps = (np.cumsum(weights) * 2.0**32).astype(np.uint64)
    kinds = np.searchsorted(steps, _raw(dice, count) >> np.uint64(32)).clip(max=len(weights) - 1)
    fresh = _raw(dice, count) >= np.uint64(_STICKY * 2**64)
    fresh |= np.r_[True, kinds[:-1] >= plain]
    fresh[0] = True
    return kinds[np.maximum.accumulate(np.where(fresh, np.arange(count), 0))]


def _uuids(dice: np.random.Philox, count: int) -> Bytes:
    digits = _hex(dice, count, 32)
    digits[:, 12] = ord("4")
    rows = np.full((count, 36), ord("-"), np.uint8)
    done = 0
    for at, width in ((0, 8), (9, 4), (14, 4), (19, 4), (24, 12)):
        rows[:, at : at + width] = digits[:, done : done + width]
        done += width
    return rows


def _hex(dice: np.random.Philox, count: int, width: int) -> Bytes:
    """Rows of random hexadecimal digits; the first rows do not depend on the number of rows."""
    words = -(-width // 16)
    octets = _raw(dice, count * words).astype("<u8").view(np.uint8).reshape(count, words * 8)
    return _HEX[np.stack([octets >> 4, octets & 15], axis=2).reshape(count, words * 16)[:, :width]]


def _digits(numbers: Numbers, width: int) -> Bytes:
    """The last `width` decimal digits of each number, a row each."""
    return (numbers[:, None] // _TENS[20 - width :] % np.uint64(10)).astype(np.uint8) + 48


@lru_cache(maxsize=32)
def _words(width: int) -> Bytes:
    """Pronounceable words of one length; frequent words are repeated."""
    dice = _dice(width, 1 << 40)
    picks = (_raw(dice, 8 * 600) % np.uint64(len(_SYLLABLES))).reshape(600, 8)
    words = ["".join(_SYLLABLES[int(pick)] for pick in row)[:width] for row in picks]
    skewed = [word for place, word in enumerate(words) for _ in range(1 + 40 // (place + 1))]
    return np.frombuffer("".join(skewed).encode(), np.uint8).reshape(-1, width)


@lru_cache(maxsize=1)
def _templates() -> tuple[_Template, ...]:
    return tuple(map(_parse_template, [*_TEMPLATES, *_TRACEBACKS]))


def _parse_template(line: str) -> _Template:
    parts, holes, size, done = [], [], 0, 0
    for found in _HOLE.finditer(line):
        parts.append(line[done : found.start()])
        size += len(parts[-1])
        name = found[1]
        kind, width = (name, _WIDTHS[name]) if name in _WIDTHS else (name[0], int(name[1:]))
        holes.append(_Hole(kind, size, width))
        parts.append("\0" * width)
        size += width
        done = found.end()
    parts.append(line[done:] + "\n")
    return _Template(np.frombuffer("".join(parts).encode(), np.uint8), tuple(holes))


def _dice(seed: int, number: int) -> np.random.Philox:
    return np.random.Philox(key=np.array([seed, number], np.uint64))


def _raw(dice: np.random.Philox, count: int) -> Numbers:
    """Random bits: the only output of numpy's generators that is the same in every version."""
    return np.asarray(dice.random_raw(count), np.uint64)
