"""The Agent SDK's own conformance suite over examples/agent_sdk_sessions.py. Runs where the SDK is: `make test-sdk`.

python sdk_conformance.py directory|seaweedfs
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import uuid
from contextlib import ExitStack

from claude_agent_sdk.testing import run_session_store_conformance

from examples.agent_sdk_sessions import BucketSessions
from monocontext.stores import open_store
from monocontext.testing import CountingStore, SeaweedServer


def main(kind: str) -> None:
    stores: list[CountingStore] = []
    with ExitStack() as stack:
        root, options = stack.enter_context(tempfile.TemporaryDirectory()), {}
        if kind == "seaweedfs":
            server = stack.enter_context(SeaweedServer())
            root, options = server.url().rstrip("/"), {"client": server.client()}

        def make() -> BucketSessions:
            stores.append(CountingStore(open_store(f"{root}/{uuid.uuid4().hex}", **options)))
            return BucketSessions(stores[-1])

        asyncio.run(run_session_store_conformance(make, skip_optional={"list_subkeys", "list_session_summaries"}))
    assert len(stores) >= 11, f"{len(stores)} stores were made, one for each of 11 contracts was expected"
    requests = sum(store.requests for store in stores)
    print(f"conformance on {kind}: all contracts hold; {len(stores)} stores, {requests} requests")


if __name__ == "__main__":
    main(sys.argv[1])
