"""The first act of the demo: 10 GB, of which a few megabytes are read."""

from __future__ import annotations

from monocontext.testing import SlowStore
from rlm.cli import demo_large
from rlm.models.scripted import ScriptedLM
from rlm.rlm import RLM


def test_a_log_of_ten_gigabytes_is_asked_for_a_few_megabytes() -> None:
    store = demo_large.large_log()
    rlm = RLM(lm=ScriptedLM(demo_large.TURNS), runner="local")
    completion, [lazy, everything] = demo_large.ask(rlm, store, SlowStore(store, 0.0), 90e6)
    assert completion.answer == demo_large.DISK
    assert everything.bytes_read > 9.99e9
    assert lazy.gets <= 60
    assert lazy.bytes_read <= 4e6
