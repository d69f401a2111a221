"""Ask the machine for keys: the agent of its container, or the metadata service of its instance.

Two seconds are the limit for each service, with all its requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from monocontext.stores.s3.identity.exchange import exchange
from monocontext.stores.s3.identity.keys import FoundKeys, keys_of, parse_json
from monocontext.stores.s3.identity.proxies import UnknownProxy, find_proxy
from monocontext.stores.s3.identity.reasons import AskBotocore, NoIdentity
from monocontext.stores.s3.identity.settings import Settings

if TYPE_CHECKING:
    from ssl import SSLContext

LIMIT_SECONDS = 2.0
_CONTAINER = "http://169.254.170.2"
_CONTAINER_HOSTS = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23", "localhost")
"""Hosts, besides loopback addresses, to which the token of a container may be sent."""
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.1
_INSTANCE = "http://169.254.169.254"
_ROLES = "latest/meta-data/iam/security-credentials/"
_NAMES = ("AccessKeyId", "SecretAccessKey", "Token", "Expiration")
_FIRST_SHARE = 0.5
"""Of the limit, for the token: where a service knows none, it may just be silent."""
_EXTENSION_SECONDS = 20 * 60
"""An instance may be given keys that are about to end, where the service has trouble: they go on to be accepted."""


def from_container(settings: Settings, tls: Callable[[], SSLContext]) -> FoundKeys | None:
    """Keys of a task, a pod or a function (1 GET, up to 3 within the limit). Raises `NoIdentity`."""
    environment = settings.environment
    relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    url = _CONTAINER + relative if relative is not None else environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if url is None:
        return None
    source = f"the container's credentials at {url.partition('?')[0]}"
    if not _may_be_sent_to(urlsplit(url).hostname or ""):
        raise NoIdentity(f"{source}: the host is neither a loopback address nor one of {', '.join(_CONTAINER_HOSTS)}")
    headers = {"accept": "application/json"}
    if token := _container_token(settings):
        headers["authorization"] = token
    until, attempt = time.monotonic() + LIMIT_SECONDS, 0
    while True:
        attempt += 1
        try:
            status, text = exchange(url, max(0.05, until - time.monotonic()), tls, headers=headers)
            if status == 200:
                return keys_of(parse_json(text, source), source, _NAMES)
            reason = f"HTTP {status}"
        except OSError as error:
            reason = f"no answer within {LIMIT_SECONDS:.0f} s" if isinstance(error, TimeoutError) else str(error)
        if attempt == _ATTEMPTS or time.monotonic() + _PAUSE_SECONDS >= until:
            raise NoIdentity(f"{source}: {reason}")
        time.sleep(_PAUSE_SECONDS)


def _may_be_sent_to(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host in _CONTAINER_HOSTS or ip_address(host).is_loopback
    except ValueError:
        return False


def _container_token(settings: Settings) -> str | None:
    path = settings.environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    token = settings.environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    if path is not None:
        try:
            with open(path) as file:
                token = file.read()
        except OSError as error:
            raise NoIdentity(f"the container's token {path}: {error.strerror}") from None
    if token and ("\r" in token or "\n" in token):
        raise NoIdentity("the container's token has a line break")
    return token


def from_instance(settings: Settings, tls: Callable[[], SSLContext], tried: list[str]) -> FoundKeys | None:
    """Keys of the role of an instance (3 requests), or `None`, with the reason in `tried`."""
    environment = settings.environment
    if environment.get("AWS_EC2_METADATA_DISABLED", "false").lower() == "true":
        tried.append("instance metadata (disabled)")
        return None
    for variable, name in (
        ("AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout"),
        ("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "metadata_service_num_attempts"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode"),
        ("AWS_EC2_METADATA_V1_DISABLED", "ec2_metadata_v1_disabled"),
        ("AWS_IMDS_USE_IPV6", "imds_use_ipv6"),
    ):
        if settings.value(variable, name) is not None:
            raise AskBotocore(f"{name} is set")
    base = settings.value("AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint") or _INSTANCE
    source = f"instance metadata at {base}"
    try:
        return _from_role(str(base), source, tls)
    except TimeoutError:
        tried.append(f"{source} (no answer within {LIMIT_SECONDS:.0f} s)")
    except (OSError, ValueError) as error:
        tried.append(f"{source} ({error})")
    except UnknownProxy as error:
        raise AskBotocore(str(error)) from None
    except NoIdentity as error:
        tried.append(str(error))
    return None


def _from_role(base: str, source: str, tls: Callable[[], SSLContext]) -> FoundKeys | None:
    proxy, until = find_proxy(base), time.monotonic() + LIMIT_SECONDS
    root = base if base.endswith("/") else base + "/"

    def ask(path: str, method: str, headers: dict[str, str], share: float = 1.0) -> tuple[int, str]:
        left = max(0.05, (until - time.monotonic()) * share)
        return exchange(root + path, left, tls, method=method, headers=headers, proxy=proxy)

    headers = {}
    try:
        status, token = ask("latest/api/token", "PUT", {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}, _FIRST_SHARE)
        if status == 200:
            headers["x-aws-ec2-metadata-token"] = token
        elif status == 400:
            raise NoIdentity(f"{source} (HTTP 400)")
    except TimeoutError:
        pass  # the first version of the service has no token
    status, role = ask(_ROLES, "GET", headers)
    if status != 200 or not role:
        raise NoIdentity(f"{source} ({'no role' if status in (200, 404) else f'HTTP {status}'})")
    status, text = ask(_ROLES + role, "GET", headers)
    if status != 200:
        raise NoIdentity(f"{source} (HTTP {status})")
    found = keys_of(parse_json(text, source), f"{source}, role {role}", _NAMES)
    if found.expires is not None:
        found = found._replace(expires=max(found.expires, time.time() + _EXTENSION_SECONDS))
    return found
