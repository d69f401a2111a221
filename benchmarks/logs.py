"""Generate logs of any size; a seed gives the same bytes on every machine.

Each block is computed from the seed and its number alone. The logs resemble the samples of logpai/loghub: the median
line has 97 to 140 characters, the ten most frequent templates make 70 to 100 % of the lines, templates come in runs,
neighbouring lines share request ids (UUIDs), lines come in bursts, timestamps never go back, and there are some
tracebacks. All of it is ASCII, so a character is a byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache
from random import Random

BLOCK_BYTES = 2 << 20
NEEDLE = "incident-4711 volume vol-93 detached"
_INCIDENT_SEED = 6
_BLOCK_MILLISECONDS = 40_000
_EPOCH_SECONDS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
_STICKY = 0.3  # the probability that a line repeats the template of the line before
_TRACEBACK = 0.004  # the share of entries that are tracebacks
_QUIET = 0.03  # the share of lines after a pause, of 60 ms on average; others follow at once
_LEAST_BYTES = 1100  # a block with less room than this, which fits any entry and the filler, ends with a filler line

# Holes: {t} time, {id} the request's UUID, {d5} a number of 5 digits, {x12} 12 hexadecimal digits, {w7} a word of 7
# letters, {ip} an address.
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

_HOLE = re.compile(r"\{([a-z]+)(\d*)\}")
_SYLLABLES = re.findall(r"\w+", "ba co di fe gu ha jo ki la me no pa qui ro su ta ve wi xa yo zen mar lin tor des")


def make_logs(size_bytes: int, seed: int) -> Iterator[bytes]:
    """A log in blocks of whole lines, in order; the last block may be shorter."""
    for number in range(-(-size_bytes // BLOCK_BYTES)):
        block_bytes = min(BLOCK_BYTES, size_bytes - number * BLOCK_BYTES)
        data = _block(seed, number)
        yield data if block_bytes == BLOCK_BYTES else data[: block_bytes - 1] + b"\n"


def make_incident(size_bytes: int, share: float) -> bytes:
    """A log of `size_bytes`, and one more line, which contains NEEDLE, after the `share` (0 to 1) of its bytes."""
    data = b"".join(make_logs(size_bytes, _INCIDENT_SEED))
    offset = data.index(b"\n", int(share * size_bytes)) + 1
    return data[:offset] + f"2026-03-01T12:00:00 ERROR {NEEDLE}\n".encode() + data[offset:]


def _block(seed: int, number: int) -> bytes:
    dice = Random(f"logs {seed} {number}")
    weights = [1 / (rank + 1) ** 1.35 for rank in range(len(_TEMPLATES))]
    templates = dice.choices(_TEMPLATES, weights, k=BLOCK_BYTES // 60)
    entries: list[str] = []
    left_bytes, milliseconds, usual = BLOCK_BYTES, 0, templates[0]
    requests = [_uuid(dice) for _ in range(3)]
    while left_bytes > _LEAST_BYTES:
        if dice.random() < _QUIET:
            milliseconds = min(milliseconds + int(dice.expovariate(1 / 60)), _BLOCK_MILLISECONDS - 1)
        if dice.random() >= _STICKY:
            usual = templates[len(entries)]
        if len(entries) % 4 == 0:
            requests = [*requests[1:], _uuid(dice)]
        template = dice.choice(_TRACEBACKS) if dice.random() < _TRACEBACK else usual
        entries.append(_filled(template, _time(number, milliseconds), requests[int(3 * dice.random())], dice))
        left_bytes -= len(entries[-1])
    filler = f"{_time(number, milliseconds)} DEBUG [pad] runtime.memory page map "
    digits = f"{dice.getrandbits(8 * left_bytes):0{2 * left_bytes}x}"
    return ("".join(entries) + filler + digits[: left_bytes - len(filler) - 1] + "\n").encode()


def _filled(template: str, time: str, request: str, dice: Random) -> str:
    """An entry of the log: a template whose holes are filled."""

    def fill(hole: re.Match[str]) -> str:
        name, width = hole[1], int(hole[2] or 0)
        match name:
            case "t":
                return time
            case "id":
                return request
            case "ip":
                return ".".join(["10", *(str(100 + int(156 * dice.random())) for _ in range(3))])
            case "x":
                return f"{dice.getrandbits(4 * width):0{width}x}"
            case "w":
                words = _words(width)
                return words[int(dice.random() ** 3 * len(words))]  # the first words are more frequent
        least = 10 ** (width - 1)
        return str(least + int(9 * least * dice.random()))

    return _HOLE.sub(fill, template) + "\n"


@lru_cache(1)
def _time(number: int, milliseconds: int) -> str:
    """The time so many milliseconds after block `number` begins, such as `2026-03-01T00:00:00.000Z`."""
    seconds, rest = divmod(number * _BLOCK_MILLISECONDS + milliseconds, 1000)
    return f"{datetime.fromtimestamp(_EPOCH_SECONDS + seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03}Z"


def _uuid(dice: Random) -> str:
    digits = f"{dice.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{digits[16:20]}-{digits[20:]}"


@cache
def _words(width: int) -> list[str]:
    """Pronounceable words of one length."""
    dice = Random(f"words {width}")
    return ["".join(dice.choices(_SYLLABLES, k=8))[:width] for _ in range(600)]
