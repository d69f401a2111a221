"""The boto3 client behind an S3 store, and the transport that reads beside it: made on first use, once a process.

A client is shared by threads, but not across a fork: two processes that read from one inherited socket receive each
other's objects without any error (reproduced with boto3 over plain HTTP). So each process makes its own.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from monocontext.stores.s3_origin import S3Origin
from monocontext.stores.s3_refusals import Refusals
from monocontext.stores.s3_route import authorities, is_overheard, learn_route, listeners
from monocontext.transport import MAX_IDLE, Client, Dialler, Pool

if TYPE_CHECKING:
    from ssl import SSLContext

_CONNECT_TIMEOUT_SECONDS = 5
_READ_TIMEOUT_SECONDS = 10
_ATTEMPTS = 4
_CONNECTIONS = 64
_DEFAULT_REGION = "us-east-1"
TRANSPORTS = ("own", "boto3")


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach a bucket. Holds no secret: keys come from boto3's credential chain."""

    endpoint: str | None = None
    """URL of the server; without it, the configured one or AWS."""
    region: str | None = None
    """Without it, the configured one; where an endpoint is given and nothing configured, `us-east-1`."""
    profile: str | None = None
    """Profile of the AWS configuration."""
    path_style: bool | None = None
    """The bucket in the path instead of the host; without it, so where the server is not AWS."""
    anonymous: bool = False
    """Sign nothing."""
    transport: str = "own"
    """What GETs travel by: `own`, or `boto3` as everything else does."""
    keep_alive: bool = True
    """Connections of our own transport wait up to 20 s for the next GET; without it none is open between two calls."""

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise ValueError(f"transport is one of {', '.join(TRANSPORTS)}, not {self.transport!r}")


class _Held:
    """The client of one process, what reads beside it, and the lock under which they are made."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.client: Any = None
        self.listeners: list[Any] | None = None
        self.pool: Pool | None = None
        self.transports: dict[str, Client | None] = {}


class S3Connection:
    """Gives the client of this process, and the transport to each bucket."""

    def __init__(self, options: S3Options, client: Any = None) -> None:
        self.options = options
        self.given = client
        """A client made by the caller, who then answers for forks."""
        self.refusals = Refusals()
        """What servers said to the boto3 client."""
        if client is not None:
            self.refusals.listen(client)
        self._held = _Held()

    def client(self) -> Any:
        """The boto3 client; the first call costs 0.3 s, most of it the import."""
        return self._connected().client if self.given is None else self.given

    def transport(self, bucket: str) -> Client | None:
        """Our own way to the objects of a bucket, or `None` where reads go through boto3: because the caller said so
        or brought a client, because moto or its like listens in, or because boto3 does what our transport does not.
        """
        if self.given is not None or self.options.transport == "boto3":
            return None
        held = self._connected()
        if is_overheard(held.listeners):
            return None
        if bucket not in held.transports:
            with held.lock:
                if bucket not in held.transports:
                    held.transports[bucket] = self._open(held, bucket)
        return held.transports[bucket]

    def _connected(self) -> _Held:
        held = self._held
        if held.process != os.getpid():
            # The lock goes too: a thread that did not survive the fork may have held it.
            inherited, held = held, _Held()
            self._held = held
            if inherited.pool is not None:
                inherited.pool.close()  # our copies of the parent's sockets
        if held.client is None:
            with held.lock:
                if held.client is None:
                    client = _connect(self.options)
                    self.refusals.listen(client)
                    held.listeners = listeners(client)
                    held.client = client
        return held

    def _open(self, held: _Held, bucket: str) -> Client | None:
        client, options = held.client, self.options
        route = learn_route(client, bucket)
        if route is None:
            return None
        if held.pool is None:
            held.pool = Pool(Dialler(lambda: _tls(client)), MAX_IDLE if options.keep_alive else 0)
        origin = S3Origin(
            client, bucket, route, lambda region: _connect(replace(options, region=region or options.region))
        )
        return Client(origin, held.pool, attempts=_ATTEMPTS, silence_seconds=_READ_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close the connections; a later `client()` opens new ones. A client given by the caller stays open."""
        held, self._held = self._held, _Held()
        if held.pool is not None:
            held.pool.close()
        if held.client is not None and held.process == os.getpid():
            _hang_up(held.client)


def _hang_up(client: Any) -> None:
    """Close a client with its sockets. botocore only forgets its pools, and those that an error's traceback refers to
    live on, sockets and all, until the collector comes by."""
    # Not public: what a version of botocore lacks is left out.
    session = getattr(getattr(client, "_endpoint", None), "http_session", None)
    managers = [getattr(session, "_manager", None), *getattr(session, "_proxy_managers", {}).values()]
    pools = [manager.pools for manager in managers if manager is not None]
    found = [each.get(key) for each in pools for key in each.keys()]  # noqa: SIM118  (it has no iteration of its own)
    client.close()
    for pool in found:
        if pool is not None:
            pool.close()


def _tls(client: Any) -> SSLContext:
    import ssl  # 10 ms that plain HTTP need not pay

    path = authorities(client)
    return ssl.create_default_context(capath=path) if os.path.isdir(path) else ssl.create_default_context(cafile=path)


@cache
def _models() -> Any:
    """What botocore reads from its files to make a client. Each session would read it anew, and a client takes a
    session of its own: shared, that would hand on credentials that were refused."""
    return import_module("botocore.session").get_session().get_component("data_loader")


def _session(profile: str | None) -> Any:
    # boto3 and botocore carry no types; brought in like this they are `Any`, here and nowhere else.
    inner, models = import_module("botocore.session").get_session(), _models()
    inner.register_component("data_loader", models)
    session = import_module("boto3.session").Session(profile_name=profile, botocore_session=inner)
    models.search_paths[:] = dict.fromkeys(models.search_paths)  # each session of boto3 appends its own folder
    return session


def settings(options: S3Options, style: str) -> dict[str, Any]:
    """What botocore's configuration is made of, here and in the asynchronous client."""
    return {
        "connect_timeout": _CONNECT_TIMEOUT_SECONDS,
        "read_timeout": _READ_TIMEOUT_SECONDS,
        "retries": {"mode": "standard", "total_max_attempts": _ATTEMPTS},
        "max_pool_connections": _CONNECTIONS,
        "s3": {"addressing_style": style},
        # Our own crc32c covers each frame; botocore's default trailers cost CPU and trip servers other than AWS.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "signature_version": import_module("botocore").UNSIGNED if options.anonymous else None,
    }


def region_of(options: S3Options, session: Any) -> str | None:
    """The region to ask: the caller's, the configured one, or that of servers that have none."""
    return options.region or session.region_name or (_DEFAULT_REGION if options.endpoint else None)


def _connect(options: S3Options) -> Any:
    session = _session(options.profile)

    def make(style: str) -> Any:
        config = import_module("botocore.config").Config(**settings(options, style))
        region = region_of(options, session)
        return session.client("s3", region_name=region, endpoint_url=options.endpoint, config=config)

    if options.path_style is not None:
        return make("path" if options.path_style else "virtual")
    if options.endpoint:
        return make("path")
    client = make("auto")
    if is_aws(client):
        return client
    # The endpoint came from the environment or a profile, by rules that are botocore's: ask it what it found.
    _hang_up(client)
    return make("path")


def is_aws(client: Any) -> bool:
    """Whether the client talks to AWS itself, not to another server with its protocol."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
