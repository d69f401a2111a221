"""Where reads go on, read by read."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from monocontext.engine.prefetch.streams import MOST_AHEAD, ExpectedRead, SeenRead, Streams

FRAMES = 1000
FRAME = 100
ROOM = 1 << 40


def read(start: int, stop: int) -> SeenRead:
    return SeenRead(start, stop, start // FRAME, (stop - 1) // FRAME)


def streams() -> Streams:
    return Streams(FRAMES * FRAME, FRAMES)


def fed(
    known: Streams, reads: Iterable[tuple[int, int]], *, waited: bool = True, room: int = ROOM
) -> list[ExpectedRead]:
    """What the last of these reads brings."""
    found: list[ExpectedRead] = []
    for start, stop in reads:
        found = known.read(read(start, stop), waited, room)
    return found


def places(found: list[ExpectedRead]) -> list[tuple[int, int]]:
    return [(one.start, one.stop) for one in found]


def test_nothing_on_first_touch() -> None:
    known = streams()
    assert fed(known, [(0, 250)]) == []
    assert fed(known, [(50_000, 50_250)]) == []
    assert len(known._streams) == 0


def test_the_read_after_two_that_meet() -> None:
    known = streams()
    found = fed(known, [(0, 250), (250, 500)])
    assert places(found) == [(500, 750)]
    assert not found[0].in_frames


def test_a_read_that_begins_where_the_last_one_did_and_goes_further() -> None:
    known = streams()
    fed(known, [(0, 250), (0, 450), (0, 650)])
    assert all(stream.step for stream in known._streams)


def test_short_reads_walk_by_frames() -> None:
    """What lies in a frame at hand is not seen: the second read that is seen reaches into the next frame."""
    found = fed(streams(), [(0, 30), (90, 120)])
    assert [(one.start, one.stop, one.in_frames) for one in found] == [(2, 3, True)]
    back = fed(streams(), [(970, 1000), (890, 920)])
    assert [(one.start, one.stop, one.in_frames) for one in back] == [(7, 8, True)]


def test_frames_beside_each_other_need_three() -> None:
    known = streams()
    assert fed(known, [(10, 20), (110, 120)]) == []
    assert places(fed(known, [(215, 220)])) == [(3, 4)]


def test_a_stride_needs_three() -> None:
    known = streams()
    assert fed(known, [(7, 17), (1007, 1017)]) == []
    assert places(fed(known, [(2007, 2017)])) == [(3007, 3017)]
    assert places(fed(streams(), [(9007, 9017), (8007, 8017), (7007, 7017)])) == [(6007, 6017)]


def test_it_grows_only_when_the_reader_waited_and_by_what_was_read() -> None:
    known = streams()
    fed(known, [(at, at + 250) for at in range(0, 2500, 250)], waited=False)
    [stream] = known._streams
    assert (stream.reads_ahead, stream.ahead) == (0, 0)
    for at in range(2500, 10_000, 250):
        known.read(read(at, at + 250), True, ROOM)
        assert stream.ahead <= max(1, stream.reads // 4)
    assert stream.reads_ahead == MOST_AHEAD
    size = stream.ahead
    known.read(read(10_000, 10_250), False, ROOM)
    assert stream.ahead in (size, size + 1)


def test_room_is_never_exceeded_and_a_part_is_nothing() -> None:
    known = streams()
    assert fed(known, [(0, 250), (250, 500)], room=249) == []
    assert places(fed(known, [(500, 750)], room=300)) == [(750, 1000)]


def test_scans_at_equal_distances_are_scans() -> None:
    """Taken together they look like a stride."""
    known = streams()
    for k in range(4):
        for one in range(8):
            at = one * 10_000 + k * 250
            known.read(read(at, at + 250), True, ROOM)
    assert sum(stream.is_walk for stream in known._streams) == 8


def test_thinking_gives_each_stream_its_next_reads() -> None:
    known = streams()
    fed(known, [(0, 250), (250, 500), (500, 750), (750, 1000)] * 1, waited=False)
    fed(known, [(50_000, 50_250), (49_750, 50_000)], waited=False)
    assert places(known.think(2, ROOM)) == [(49_500, 49_750), (1000, 1250)]
    assert known.think(2, ROOM) == []  # given out already


@pytest.mark.parametrize("direction", [1, -1])
def test_at_the_ends_of_the_text_it_ends(direction: int) -> None:
    known = streams()
    ends = [99_250, 99_500, 99_750] if direction > 0 else [500, 250, 0]
    assert fed(known, [(at, at + 250) for at in ends]) == []
