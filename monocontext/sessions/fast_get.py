"""Get one object in one attempt with a time limit, since a user waits for it at the start of a session.

It reads directories, and S3 if credentials and route can be found without boto3 (`stores.s3.account`). For all else
it raises `NeedsFullClient`, and the caller opens the store, which is slower.
"""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

from monocontext.errors import StoreFailure
from monocontext.stores.address import Address, parse
from monocontext.stores.http.http11 import ChunkDecoder, request_head, split_head
from monocontext.stores.http.route import Endpoint, Route, Signer, encode_path
from monocontext.stores.regular_file import open_file
from monocontext.stores.s3.account import BotocoreIdentity, account_of
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.settings import NoIdentity, UnsupportedBySigner

if TYPE_CHECKING:
    from ssl import SSLContext


class NeedsFullClient(Exception):
    """Only the store's own client can read this object; the message says why."""


def get_once(url: str, key: str, options: dict[str, object], timeout_seconds: float, most_bytes: int) -> bytes | None:
    """The first `most_bytes` of an object, or None if there is none (1 GET).

    Raises `NeedsFullClient`, `StoreFailure`, `InvalidUrl`.
    """
    address = parse(url)
    if address.scheme == "file":
        try:
            with open_file(os.path.join(address.path, key)) as file:
                return file.read(most_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreFailure(str(error)) from None
    if address.scheme == "memory":
        raise StoreFailure(f"{url} is in the memory of another process")
    if address.scheme != "s3":
        raise NeedsFullClient(f"{address.scheme} has a client of its own")
    return _get_from_s3(address, key, options, timeout_seconds, most_bytes)


def _get_from_s3(
    address: Address, key: str, options: dict[str, object], timeout_seconds: float, most_bytes: int
) -> bytes | None:
    route, signer = _plan(address.place, options)
    endpoint = route.endpoint
    host, path = endpoint.host_header, route.path + encode_path(f"{address.path}/{key}".lstrip("/"))
    headers = {"host": host} if signer is None else signer.headers("GET", host, path, "", {}, time.time())
    head = request_head("GET", path, {**headers, "connection": "close"})
    try:
        deadline = time.monotonic() + timeout_seconds
        try:
            status, body = _exchange(endpoint, head, deadline, most_bytes)
        except OSError as error:
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                raise
            status, body = _exchange(endpoint, head, deadline, most_bytes, all_certificates=True)
    except OSError as error:
        raise StoreFailure(f"{endpoint}: {error}") from None
    if status == 404 and b"NoSuchBucket" not in body:
        return None
    if status in (301, 307, 400):
        raise NeedsFullClient(f"{endpoint} answered {status}: another region?")
    if status != 200:
        raise StoreFailure(f"{endpoint} answered {status}")
    return body


def _exchange(
    endpoint: Endpoint, request: bytes, deadline: float, most_bytes: int, *, all_certificates: bool = False
) -> tuple[int, bytes]:
    """The status and the first bytes of the body. Raises `OSError`, also after `deadline` or if the body breaks off.

    `http.client` is not used: its import takes 25 ms.
    """
    sock = socket.create_connection((endpoint.host, endpoint.port), max(0.01, deadline - time.monotonic()))
    if endpoint.scheme == "https":
        sock = _make_tls_context(all_certificates).wrap_socket(sock, server_hostname=endpoint.host)
    with sock:
        data = b""

        def receive() -> bytes:
            sock.settimeout(max(0.01, deadline - time.monotonic()))
            return sock.recv(1 << 16)

        sock.sendall(request)
        while (found := split_head(data)) is None:
            if not (more := receive()):
                raise OSError("the connection was closed before a response arrived")
            data += more
        answer, rest = found
        chunks = ChunkDecoder() if answer.is_chunked else None
        body = bytearray(chunks.feed(rest) if chunks else rest)
        length = most_bytes if answer.body_bytes is None else min(answer.body_bytes, most_bytes)
        while len(body) < length and not (chunks and chunks.ended):
            if not (more := receive()):
                if chunks or answer.body_bytes is not None:
                    raise OSError(f"the answer broke off after {len(body):,} bytes")
                break
            body += chunks.feed(more) if chunks else more
        return answer.status, bytes(body[:length])


def _make_tls_context(all_certificates: bool) -> SSLContext:
    """An SSL context with the certificates of this system.

    Reading the file with all certificates takes 40 ms of a core. So without `all_certificates` the needed ones are
    looked up in a folder with a file for each, if there is such a folder.
    """
    import ssl

    folder = ssl.get_default_verify_paths().capath
    names = os.listdir(folder) if folder and not all_certificates and not os.environ.get("SSL_CERT_FILE") else []
    if not any(name.endswith(".0") for name in names):
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(capath=folder)
    return context


def _plan(bucket: str, options: dict[str, object]) -> tuple[Route, Signer | None]:
    """The route to a bucket, and a signer unless access is anonymous. Raises `NeedsFullClient`."""
    names = ("endpoint", "region", "profile", "path_style", "anonymous")
    given: dict[str, Any] = {name: options[name] for name in names if options.get(name) is not None}
    wanted = S3Options(**given)

    def refuse(_options: S3Options, _bucket: str, reason: str) -> None:
        raise NeedsFullClient(reason)

    try:
        plan = account_of(wanted.profile).plan(wanted, bucket, refuse)
        assert plan is not None
        if plan.route.endpoint.proxy:
            raise NeedsFullClient("there is a proxy")
        if isinstance(plan.identity, BotocoreIdentity):
            raise NeedsFullClient(plan.identity.source)
        return plan.route, Signer(plan.identity.get(), plan.route.region) if plan.route.signed else None
    except (UnsupportedBySigner, NoIdentity) as error:
        raise NeedsFullClient(str(error)) from None
