"""A case opens many contexts, and each of them a session of boto3, which reads its models of S3 anew: 0.1 s of CPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import botocore.session
import pytest


@pytest.fixture(scope="session", autouse=True)
def models_are_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield
