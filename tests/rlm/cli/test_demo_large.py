"""The first act of the demo: 10 GB, of which a few megabytes are read."""

from __future__ import annotations

from monocontext import Monocontext
from monocontext.testing import CountingStore
from rlm import RLM, ScriptedLM
from rlm.cli import demo


def test_a_log_of_ten_gigabytes_is_asked_for_a_few_megabytes() -> None:
    store, rlm = CountingStore(demo.large_log()), RLM(lm=ScriptedLM(demo.LOG_ACT[1:3]), runner="local")
    with Monocontext.open(store) as context:
        assert rlm.completion(demo.LOG_ACT.question, context).answer == demo.LOG_ACT.expected[0]
        assert len(context) > 9.99e9
    assert store.gets <= 60
    assert store.bytes_read <= 4e6
