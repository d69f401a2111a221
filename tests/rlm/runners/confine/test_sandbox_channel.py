"""The channel alone, with an enemy at its other end; and what else is pure."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from rlm_replies import calls

from monocontext.text.from_str import wrap_str
from rlm.errors import ChannelAbuse, RunnerUnavailable
from rlm.runners.cell_thread import NOTES_CHARACTERS, SLACK
from rlm.runners.channel import MOST_HEAD_BYTES, MOST_MESSAGE_BYTES, PROTOCOL, Channel, ChannelClosed
from rlm.runners.claims import MOST_CLAIMS
from rlm.runners.confine import bubblewrap, seccomp
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import python_view
from rlm.runners.remote import RemoteRunner
from rlm.runners.values import decode_from_worker, split_texts


def framed(head: object, body: bytes = b"") -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return (len(text) + len(body)).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + body


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    fd = ours.detach()
    channel = Channel(fd, fd)
    yield channel, theirs
    theirs.close()
    channel.close()


def test_messages_cross_whole_and_in_pieces(ends: tuple[Channel, socket.socket]) -> None:
    channel, enemy = ends
    data = framed({"op": "x"}, b"body")
    for byte in data[:-1]:
        enemy.sendall(bytes([byte]))
        assert channel.receive(0) is None
    enemy.sendall(data[-1:] + framed({"op": "y"}))
    head, body = channel.receive(1) or ({}, memoryview(b""))
    assert (head, bytes(body)) == ({"op": "x"}, b"body")
    assert (channel.receive(1) or ({}, None))[0] == {"op": "y"}


@pytest.mark.parametrize(
    "sent",
    [
        (MOST_MESSAGE_BYTES + 1).to_bytes(4, "big") + (2).to_bytes(4, "big"),
        (1 << 31).to_bytes(4, "big") + (MOST_HEAD_BYTES + 1).to_bytes(4, "big"),
        (100).to_bytes(4, "big") + (101).to_bytes(4, "big"),
        (MOST_HEAD_BYTES + 9).to_bytes(4, "big") + (MOST_HEAD_BYTES + 1).to_bytes(4, "big"),
        framed(b"[]"),
        framed(b"nothing"),
        framed(b"[" * 900_000),
        framed(b'{"a":' * 150_000),
        framed(b"\xff\xfe"),
        framed(b'{"a": ' + b"9" * 5000 + b"}"),
    ],
)
def test_what_is_not_a_message_is_abuse(ends: tuple[Channel, socket.socket], sent: bytes) -> None:
    channel, enemy = ends
    threading.Thread(target=lambda: enemy.sendall(sent), daemon=True).start()
    with pytest.raises(ChannelAbuse):
        channel.receive(10)


def test_a_message_that_never_ends_costs_no_more_than_the_time(ends: tuple[Channel, socket.socket]) -> None:
    channel, enemy = ends
    enemy.sendall(MOST_MESSAGE_BYTES.to_bytes(4, "big") + (10).to_bytes(4, "big") + b"x")
    assert channel.receive(0.2) is None


def test_one_who_does_not_read_cannot_hold_the_host(ends: tuple[Channel, socket.socket]) -> None:
    channel, _ = ends
    with pytest.raises(ChannelClosed, match="does not read"):
        channel.send({}, [bytes(64 << 20)], seconds=0.2)
    with pytest.raises(ChannelClosed):
        channel.send({})


@pytest.mark.parametrize(
    "tree", [["", "", ""], {"x": 1}, {"dict": [1, 2]}, {"dict": [""]}, {}, {"known": 1}, {"known": -1},
             eval("[" * 60 + "]" * 60)],
)  # fmt: skip
def test_trees_that_no_worker_sends_are_abuse(tree: object) -> None:
    with pytest.raises(ChannelAbuse):
        decode_from_worker(tree, iter(["a", "b"]), ["known"])


@pytest.mark.parametrize("sizes", [None, "5", [5], [-1, 5], [True], [1.0], [2, 3]])
def test_lengths_that_do_not_fit_are_abuse(sizes: object) -> None:
    with pytest.raises(ChannelAbuse):
        split_texts(sizes, memoryview(b"\xff\xffabcd"))


class Liar(RemoteRunner):
    """A runner whose workers follow the protocol until a cell comes, and then send what they like."""

    name = "liar"

    def __init__(
        self, lie: Callable[[socket.socket], None], context: object = "c", *, protocol: int = PROTOCOL, **options: Any
    ) -> None:
        self._lie, self._protocol = lie, protocol
        super().__init__(context, calls(), **options)

    def launch(self) -> tuple[Any, Mapping[str, Any]]:
        ours, theirs = socket.socketpair()
        fd = ours.detach()

        def work() -> None:
            enemy_fd = theirs.detach()
            enemy = Channel(enemy_fd, enemy_fd)
            try:
                enemy.receive(10)
                enemy.send({"op": "started"})
                enemy.receive(10)
                with socket.socket(fileno=os.dup(enemy_fd)) as raw:
                    raw.setblocking(True)
                    self._lie(raw)
            except (ChannelClosed, OSError):
                pass
            finally:
                enemy.close()

        threading.Thread(target=work, daemon=True).start()

        class Worker:
            channel = Channel(fd, fd)

            def end(self, *, hung_up: bool = False) -> str:
                self.channel.close()
                return "ended"

        return Worker(), {"protocol": self._protocol}


def run_with(lie: Callable[[socket.socket], None], **options: Any) -> Any:
    runner = Liar(lie, **options)
    try:
        return runner.run("1")
    finally:
        runner.close()


RESULT = {"op": "done", "id": 1, "result": [], "texts": []}


def reported(body: bytes = b"", **lies: Any) -> bytes:
    """The message of a result, right but for what is given."""
    right = {"out": "", "err": "", "answer": None, "raised": False, "variables": {"dict": []}, "claims": []}
    tree, sizes = [*(right | lies).values()], [len(body), 0]
    return framed({**RESULT, "result": tree, "texts": sizes}, body)


@pytest.mark.parametrize(
    "message",
    [
        {**RESULT, "id": 2},
        RESULT,
        reported(out=5),
        reported(variables=[1, 2]),
        reported(variables=[""]),
        reported(answer=5),
        reported(raised="x"),
        reported(claims="x"),
        reported(claims=[None] * (MOST_CLAIMS + 2)),
        {"op": "started"},
        {"op": "call", "id": 1, "name": "__import__", "given": [[""], {"dict": []}], "texts": [0]},
        {"op": "call", "id": 1, "name": "llm_query", "given": "", "texts": [0]},
        {"op": "call", "id": "one", "name": "llm_query", "given": [[""], {"dict": []}], "texts": [0]},
        {"op": "call", "id": 1, "name": ["llm_query"], "given": [[""], {"dict": []}], "texts": [0]},
        {"op": "read", "text": 0, "id": 1},
        {"op": ["read"], "text": 0, "id": 1},
        {"op": "call", "id": 1, "name": "llm_query", "given": [[{"known": 1}], {"dict": []}], "texts": []},
        {},
    ],
)
def test_a_lie_ends_the_run_with_a_typed_error(message: dict[str, Any] | bytes) -> None:
    data = message if isinstance(message, bytes) else framed(message)
    with pytest.raises(ChannelAbuse):
        run_with(lambda enemy: (enemy.sendall(data), time.sleep(5))[0])


def test_a_flood_of_requests_ends_the_run() -> None:
    release = threading.Event()
    call = framed({"op": "call", "id": 1, "name": "wait", "given": [[], {"dict": []}], "texts": []})
    try:
        with pytest.raises(ChannelAbuse, match=r"65 open requests of [\d,]+ bytes in all: at most 64 requests and 134"):
            run_with(lambda enemy: enemy.sendall(call * 200), names={"wait": lambda: release.wait(60)})
    finally:
        release.set()


def test_what_the_worker_asks_of_a_context_is_bounded_before_it_is_read() -> None:
    bomb = b"[" + b"[]," * (MOST_HEAD_BYTES // 3) + b"1]"
    lie = framed({"op": "read", "text": 0, "id": 1}, bomb)
    runner = Liar(lambda enemy: enemy.sendall(lie), wrap_str("abc"))
    with pytest.raises(ChannelAbuse, match="sent a read request of"):
        runner.run("1")
    runner.close()


def test_a_result_that_is_too_long_is_cut_by_the_host() -> None:
    message = reported(b"y" * 5_000_000)
    result = run_with(lambda enemy: enemy.sendall(message), output_limit=1000)
    assert len(result.stdout) < 1000 + NOTES_CHARACTERS + 2 * SLACK + 100


@pytest.mark.slow
def test_a_silent_worker_is_given_up_after_the_cells_time() -> None:
    result = run_with(lambda enemy: time.sleep(8), cell_timeout=0.2)
    assert "CellTimeout" in result.stderr


def test_a_worker_of_another_version_is_refused() -> None:
    with pytest.raises(RunnerUnavailable, match="protocol 3"):
        Liar(lambda enemy: None, protocol=3)  # whose variables were a list


def evaluated(program: list[Any], number: int, machine: str, *arguments: int) -> int:
    """What the kernel would make of a filter: a small interpreter of classic BPF."""
    words = {0: number, 4: {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(machine, 0)}
    words |= {16 + 8 * i: value & 0xFFFFFFFF for i, value in enumerate(arguments)}
    at, held = 0, 0
    while True:
        code, yes, no, operand = program[at]
        if code == 0x20:
            held = words.get(operand, 0)
        elif code == 0x06:
            return int(operand)
        else:
            true = {0x15: held == operand, 0x35: held >= operand, 0x45: bool(held & operand)}[code]
            at += yes if true else no
        at += 1


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_and_lets_pass_what_it_should(machine: str) -> None:
    program = seccomp.program(machine, 77, has_view=True)
    x86 = machine == "x86_64"
    allow, eperm, enosys, kill = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    clone, kill_call, read, prctl = (56, 62, 0, 157) if x86 else (220, 129, 63, 167)
    assert evaluated(program, read, machine) == allow
    assert evaluated(program, clone, machine, 0x10000 | 0x100) == allow
    assert evaluated(program, clone, machine, 17) == eperm
    assert evaluated(program, 435, machine) == enosys
    assert evaluated(program, kill_call, machine, 77) == allow
    for other in (0, 1, 78, -1, -77):
        assert evaluated(program, kill_call, machine, other) == eperm
    assert evaluated(program, prctl, machine, 15) == allow
    assert evaluated(program, prctl, machine, 1) == eperm
    assert evaluated(program, 198 if not x86 else 41, machine) == eperm
    assert evaluated(program, read, "riscv64") == kill
    fcntl, truncate = (72, 76) if x86 else (25, 45)
    assert evaluated(program, fcntl, machine, 3, 4) == allow
    assert evaluated(program, fcntl, machine, 3, 8) == eperm
    assert evaluated(program, truncate, machine) == allow
    assert evaluated(seccomp.program(machine, 77, has_view=False), truncate, machine) == eperm
    pair = 53 if x86 else 199
    assert [evaluated(program, pair, machine, 1, kind) for kind in (1, 0x80801)] == [allow] * 2
    for family, kind in ((1, 2), (1, 3), (1, 5), (1, 0x80802), (2, 1), (30, 1), (40, 1)):
        assert evaluated(program, pair, machine, family, kind) == eperm
    if x86:
        assert evaluated(program, 0x40000000 | 57, machine) == enosys
    assert all(0 <= yes < 256 and 0 <= no < 256 for _, yes, no, _ in program)
    assert len(program) < 4096


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_looks_at_arguments(machine: str) -> None:
    program = seccomp.program(machine, 77, has_view=False)
    column = 0 if machine == "x86_64" else 1
    allow, eperm, enosys, nothing = 0x7FFF0000, 0x00050001, 0x00050026, 0x00050000

    def told(numbers: tuple[int, int], *arguments: int) -> int:
        return evaluated(program, numbers[column], machine, *arguments)

    for numbers in ((121, 155), (124, 156), (143, 121), (145, 120), (302, 261)):  # getpgid and its kin
        assert [told(numbers, pid) for pid in (0, 77, 78, -1)] == [allow, allow, eperm, eperm]
    assert [told((204, 123), pid) for pid in (0, 77, 78)] == [allow, allow, enosys]
    assert [told((140, 141), *who) for who in ((0, 0), (0, 77), (0, 78), (1, 0), (2, 0))] == [allow] * 2 + [eperm] * 3
    assert [told((9, 222), 0, 1, 3, flags) for flags in (0x22, 0x40022)] == [allow, eperm]
    advised = [told((28, 233), 0, 0, advice) for advice in (4, 8, 12, 14, 15, 25)]
    assert advised == [allow, allow, eperm, eperm, allow, eperm]
    assert [told((228, 113), clock) for clock in (0, 1, 3, 7, -6, -8 * 78)] == [allow] * 4 + [eperm] * 2
    waits = [told((202, 98), 0, kind) for kind in (0, 1, 128, 137, 6, 134, 8 | 256, 13 | 384)]
    assert waits == [allow] * 4 + [eperm] * 4
    assert [told((72, 25), 3, what) for what in (1032, 1031, 1026)] == [allow, eperm, eperm]
    for numbers in ((74, 82), (75, 83), (277, 84), (26, 227)):
        assert told(numbers) == nothing


def test_the_numbers_are_those_of_the_kernel() -> None:
    found: list[dict[str, int]] = []
    for file in ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"):
        if not os.path.exists(file):
            pytest.skip("the headers of the kernel are not installed")
        with open(file) as header:
            pairs = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read())
        found.append({name: int(number) for name, number in pairs})
    names = {
        **seccomp._REFUSED, **seccomp._REFUSED_WITHOUT_VIEW, **seccomp._OWN_ONLY, **seccomp._SELF_OR_ZERO,
        **seccomp._NOTHING_TO_DO,
    }  # fmt: skip
    known = {name: pair for name, pair in names.items() if any(name in table for table in found)}
    assert len(known) > 120
    assert known == {name: (found[0].get(name), found[1].get(name)) for name in known}


def test_the_command_line_of_bubblewrap_shares_nothing() -> None:
    words = bubblewrap.command("bwrap", python_view(), Limits(), ["python"])
    assert {"--unshare-all", "--clearenv", "--die-with-parent", "--new-session"} <= set(words)
    assert "--share-net" not in words
    assert "--bind" not in words
    assert words[-2:] == ["--", "python"]
