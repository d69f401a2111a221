"""One text of 10 GB for the tests of what operations cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .big import Big


@pytest.fixture(scope="session")
def big() -> Iterator[Big]:
    result = Big()
    yield result
    result.context.close()
