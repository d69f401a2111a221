"""Routes and credentials of one bucket, as the boto3 client of this process has them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from monocontext.stores.s3_route import learn_route
from monocontext.transport import Credentials, Route


class S3Origin:
    """What the transport asks for: an `Origin`.

    `connect` makes another client, for a region or (given `None`) for the same one with credentials found anew.
    """

    def __init__(self, client: Any, bucket: str, route: Route, connect: Callable[[str | None], Any]) -> None:
        self._client = client
        self._bucket = bucket
        self._route = route
        self._connect = connect
        self._lock = threading.Lock()
        self._frozen: Any = None
        self._credentials = Credentials("", "")

    def route(self) -> Route:
        return self._route

    def move(self, region: str) -> Route | None:
        with self._lock:
            if self._route.region != region:
                client = self._connect(region)
                try:
                    moved = learn_route(client, self._bucket)
                finally:
                    client.close()
                if moved is None:
                    return None
                self._route = moved
            return self._route

    def credentials(self) -> Credentials:
        # The only way to the credentials of a client; it refreshes temporary ones before they expire.
        held = self._client._request_signer._credentials
        if held is None:
            raise import_module("botocore.exceptions").NoCredentialsError
        frozen = held.get_frozen_credentials()
        if frozen != self._frozen:
            self._credentials = Credentials(frozen.access_key, frozen.secret_key, frozen.token or None)
            self._frozen = frozen
        return self._credentials

    def renew(self, refused: Credentials) -> None:
        with self._lock:  # of many threads that were refused, one looks
            if self.credentials() == refused:
                self._client = self._connect(None)
