"""Where reads go on, read by read."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from monocontext.engine.prefetch.streams import MOST_AHEAD, SeenRead, Streams, _Walk

FRAMES = 1000
FRAME = 100
ROOM = 1 << 40


def read(start: int, stop: int) -> SeenRead:
    return SeenRead(start, stop, start // FRAME, (stop - 1) // FRAME)


def streams() -> Streams:
    return Streams(FRAMES * FRAME, FRAME)


def fed(
    known: Streams, reads: Iterable[tuple[int, int]], *, waited: bool = True, room: int = ROOM
) -> list[tuple[int, int]]:
    """What the last of these reads brings."""
    found: list[tuple[int, int]] = []
    for start, stop in reads:
        found = known.note(read(start, stop), waited=waited, room_characters=room)
    return found


def test_nothing_on_first_touch() -> None:
    known = streams()
    assert fed(known, [(0, 250)]) == []
    assert fed(known, [(50_000, 50_250)]) == []
    assert len(known._streams) == 0


def test_the_read_after_two_that_meet() -> None:
    assert fed(streams(), [(0, 250), (250, 500)]) == [(500, 750)]
    assert fed(streams(), [(500, 750), (250, 500)]) == [(0, 250)]


def test_a_read_that_begins_where_the_last_one_did_and_goes_further() -> None:
    known = streams()
    fed(known, [(0, 250), (0, 450), (0, 650)])
    assert all(stream.step_characters for stream in known._streams)


def test_short_reads_walk_by_frames() -> None:
    """What lies in a frame at hand is not seen: the second read that is seen reaches into the next frame."""
    assert fed(streams(), [(0, 30), (90, 120)]) == [(120, 220)]  # the rest of a frame at hand, and the next one
    assert fed(streams(), [(970, 1000), (890, 920)]) == [(790, 890)]


def test_a_stride_needs_three() -> None:
    known = streams()
    assert fed(known, [(7, 17), (1007, 1017)]) == []
    assert fed(known, [(2007, 2017)]) == [(3007, 3017)]
    assert fed(streams(), [(9007, 9017), (8007, 8017), (7007, 7017)]) == [(6007, 6017)]


def test_it_grows_only_when_the_reader_waited_and_by_what_was_read() -> None:
    known = streams()
    fed(known, [(at, at + 250) for at in range(0, 2500, 250)], waited=False)
    [stream] = known._streams
    assert (stream.reads_ahead, stream.ahead) == (0, 0)
    for at in range(2500, 10_000, 250):
        fed(known, [(at, at + 250)])
        assert stream.ahead <= max(1, stream.reads // 4) * 250
    assert stream.reads_ahead == MOST_AHEAD
    size = stream.ahead
    fed(known, [(10_000, 10_250)], waited=False)
    assert stream.ahead in (size, size + 250)


def test_room_is_never_exceeded_and_a_part_is_nothing() -> None:
    known = streams()
    assert fed(known, [(0, 250), (250, 500)], room=249) == []
    assert fed(known, [(500, 750)], room=300) == [(750, 1000)]


def test_scans_at_equal_distances_are_scans() -> None:
    """Taken together they look like a stride."""
    known = streams()
    fed(known, [(at, at + 250) for k in range(4) for at in range(k * 250, 80_000, 10_000)])
    assert sum(isinstance(stream, _Walk) for stream in known._streams) == 8


@pytest.mark.parametrize("direction", [1, -1])
def test_at_the_ends_of_the_text_it_ends(direction: int) -> None:
    known = streams()
    ends = [99_250, 99_500, 99_750] if direction > 0 else [500, 250, 0]
    assert fed(known, [(at, at + 250) for at in ends]) == []
