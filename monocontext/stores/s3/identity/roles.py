"""Exchange a token in a file for keys: by STS for a web identity, by IAM Identity Center for an SSO session."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from monocontext.stores.s3.identity.exchange import exchange
from monocontext.stores.s3.identity.keys import FoundKeys, keys_of, parse_json, seconds_of
from monocontext.stores.s3.identity.proxies import UnknownProxy, find_proxy
from monocontext.stores.s3.identity.reasons import AskBotocore, NoIdentity
from monocontext.stores.s3.identity.settings import Settings

if TYPE_CHECKING:
    from ssl import SSLContext

_LIMIT_SECONDS = 10.0
_REGION = re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)(-gov)?-[a-z]+-\d+")
"""Regions whose services end in amazonaws.com."""
_WEB_IDENTITY = {
    "web_identity_token_file": "AWS_WEB_IDENTITY_TOKEN_FILE",
    "role_session_name": "AWS_ROLE_SESSION_NAME",
    "role_arn": "AWS_ROLE_ARN",
}
_RENEWING = ("refreshToken", "clientId", "clientSecret", "registrationExpiresAt")
_RENEW_SECONDS = 15 * 60


def from_web_identity(settings: Settings, region: str | None, tls: Callable[[], SSLContext]) -> FoundKeys | None:
    """Keys of a role for the token of a pod or a job (1 POST to STS). Raises `NoIdentity`, `AskBotocore`."""

    def get(name: str) -> Any:
        own = None if settings.profile_is_explicit else settings.environment.get(_WEB_IDENTITY[name])
        return settings.profile.get(name) if own is None else own

    path = get("web_identity_token_file")
    if not path:
        return None
    source = f"the web identity {path}"
    role = get("role_arn")
    if not role:
        raise NoIdentity(f"{source}: no role, set AWS_ROLE_ARN or role_arn")
    session = get("role_session_name")
    try:
        with open(path) as file:
            token = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise NoIdentity(f"{source}: {getattr(error, 'strerror', None) or 'it is no text'}") from None
    if settings.value("AWS_STS_REGIONAL_ENDPOINTS", "sts_regional_endpoints") not in (None, "regional"):
        raise AskBotocore("sts_regional_endpoints is set")
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": session if session is not None else f"monocontext-{time.time_ns() // 1000}",
        "WebIdentityToken": token,
    }
    url = _service_url(settings, "sts", "sts", region)
    status, text = _ask(url, source, tls, method="POST", body=urlencode(form).encode())
    if status != 200:
        reason = ": ".join(filter(None, (_element(text, "Code"), _element(text, "Message"))))
        raise NoIdentity(f"{source}: HTTP {status} {' '.join(reason.split())[:300]}")
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    return keys_of({name: _element(text, name) for name in names}, source, names)


def _element(xml: str, name: str) -> str | None:
    found = re.search(rf"<{name}>([^<]*)</{name}>", xml)
    return found[1] if found else None


def from_sso(settings: Settings, tls: Callable[[], SSLContext]) -> FoundKeys | None:
    """Keys of a role for the token that `aws sso login` left in a file (1 GET to the portal).

    Raises `NoIdentity`, and `AskBotocore` where the token has to be renewed first.
    """
    name = settings.profile_name
    if not {"sso_role_name", "sso_account_id"} & settings.profile.keys():
        return None
    config, session = dict(settings.profile), settings.profile.get("sso_session")
    if session is not None:
        if session not in settings.files.sso_sessions:
            raise NoIdentity(f"the profile {name} names the sso-session {session}, which does not exist")
        for key, value in settings.files.sso_sessions[session].items():
            if config.setdefault(key, value) != value:
                raise NoIdentity(f"{key} differs between the profile {name} and its sso-session {session}")
    needed = ("sso_role_name", "sso_account_id", "sso_start_url", "sso_region")
    if missing := [key for key in needed if key not in config]:
        raise NoIdentity(f"the profile {name} is configured for SSO but has no {', '.join(missing)}")
    key = hashlib.sha1(str(session or config["sso_start_url"]).encode(), usedforsecurity=False).hexdigest()
    path = os.path.join(os.path.expanduser("~"), ".aws", "sso", "cache", f"{key}.json")
    source = f"the SSO session of the profile {name} in {path}"
    token = _sso_token(path, source, name, renewable=session is not None)
    query = urlencode({"role_name": config["sso_role_name"], "account_id": config["sso_account_id"]})
    base = _service_url(settings, "sso", "portal.sso", str(config["sso_region"])).rstrip("/")
    url = f"{base}/federation/credentials?{query}"
    status, text = _ask(url, source, tls, headers={"x-amz-sso_bearer_token": token})
    if status == 401:
        raise NoIdentity(f"{source} was refused: run `aws sso login --profile {name}`")
    if status != 200:
        raise NoIdentity(f"{source}: HTTP {status}")
    answer = parse_json(text, source).get("roleCredentials")
    names = ("accessKeyId", "secretAccessKey", "sessionToken", "expiration")
    return keys_of(answer if isinstance(answer, dict) else {}, source, names)


def _sso_token(path: str, source: str, profile: str, *, renewable: bool) -> str:
    login = f"run `aws sso login --profile {profile}`"
    try:
        with open(path, "rb") as file:
            token = parse_json(file.read(), source)
    except FileNotFoundError:
        raise NoIdentity(f"{source} does not exist: {login}") from None
    except OSError as error:
        raise NoIdentity(f"{source}: {error.strerror}") from None
    except NoIdentity as error:
        raise NoIdentity(f"{error}: {login}") from None
    if not isinstance(token.get("accessToken"), str) or "expiresAt" not in token:
        raise NoIdentity(f"{source} holds no token: {login}")
    left = seconds_of(token["expiresAt"], source) - time.time()
    if renewable and left < _RENEW_SECONDS and all(key in token for key in _RENEWING):
        raise AskBotocore(f"{source} has to be renewed")
    if left <= 0:
        raise NoIdentity(f"{source} expired at {token['expiresAt']}: {login}")
    return str(token["accessToken"])


def _service_url(settings: Settings, service: str, host: str, region: str | None) -> str:
    if found := settings.endpoint(service):
        return found
    if region is None or not _REGION.fullmatch(region):
        raise AskBotocore(f"the endpoint of {service} in the region {region}")
    return f"https://{host}.{region}.amazonaws.com"


def _ask(
    url: str,
    source: str,
    tls: Callable[[], SSLContext],
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[int, str]:
    try:
        return exchange(url, _LIMIT_SECONDS, tls, method=method, headers=headers, body=body, proxy=find_proxy(url))
    except UnknownProxy as error:
        raise AskBotocore(str(error)) from None
    except OSError as error:
        raise NoIdentity(f"{source}: {error}") from None
