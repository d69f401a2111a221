"""The first act of the demo: 10 GB, of which a few megabytes are read."""

from __future__ import annotations

from rlm.cli import demo
from rlm.models.lm import ScriptedLM
from rlm.rlm import RLM


def test_a_log_of_ten_gigabytes_is_asked_for_a_few_megabytes() -> None:
    rlm = RLM(lm=ScriptedLM(demo.LOG_TURNS), runner="local")
    completion, lazy, everything = demo.ask_the_log(rlm, demo.large_log(), 0.0)
    assert completion.answer == demo.DISK
    assert everything.bytes_read > 9.99e9
    assert lazy.gets <= 60
    assert lazy.bytes_read <= 4e6
