"""One GET without boto3, whose import alone takes longer than a starting session should wait.

For directories, and for S3 with keys in the environment or the shared credentials file. Whoever has other credentials
(roles, single sign-on) is told `NotSimple`: the store with all its ways is slower, and works.
"""

from __future__ import annotations

import configparser
import http.client
import os
import time
from urllib.parse import urlsplit

from monocontext.errors import StoreFailure
from monocontext.stores.address import Address, parse
from monocontext.transport.signing import Credentials, Signer, encode_path


class NotSimple(Exception):
    """It takes boto3 to know how to ask."""


def light_get(url: str, key: str, options: dict[str, object], timeout_seconds: float) -> bytes | None:
    """An object's bytes, or None where there is none (1 GET). Raises `NotSimple`, `StoreFailure`, `InvalidUrl`."""
    address = parse(url)
    if address.scheme == "file":
        try:
            with open(os.path.join(address.path, key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreFailure(str(error)) from None
    if address.scheme != "s3":
        raise StoreFailure(f"{url} is in the memory of another process")
    return _from_s3(address, key, options, timeout_seconds)


def _from_s3(address: Address, key: str, options: dict[str, object], timeout_seconds: float) -> bytes | None:
    profile = str(options.get("profile") or os.environ.get("AWS_PROFILE") or "default")
    signer = None if options.get("anonymous") else Signer(_credentials(profile, options), _region(profile, options))
    scheme, host, path = _place(address, _region(profile, options), options)
    path += encode_path(f"{address.path}/{key}".lstrip("/"))
    headers = {"host": host} if signer is None else signer.headers("GET", host, path, "", {}, time.time())
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    connection = kind(host, timeout=timeout_seconds)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise StoreFailure(f"{scheme}://{host}: {error}") from None
    finally:
        connection.close()
    if answer.status == 404 and b"NoSuchBucket" not in body:
        return None
    if answer.status in (301, 307, 400):
        raise NotSimple(f"{scheme}://{host} answered {answer.status}: another region?")
    if answer.status != 200:
        raise StoreFailure(f"{scheme}://{host} answered {answer.status}")
    return body


def _place(address: Address, region: str, options: dict[str, object]) -> tuple[str, str, str]:
    """Scheme, host and the path before the key."""
    endpoint = str(
        options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    )
    if endpoint:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise NotSimple(f"an endpoint of another form: {endpoint}")
        return parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{address.place}/"
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        raise NotSimple("there is a proxy")
    if "." in address.place:  # no certificate covers it
        return "https", f"s3.{region}.amazonaws.com", f"/{address.place}/"
    return "https", f"{address.place}.s3.{region}.amazonaws.com", "/"


def _region(profile: str, options: dict[str, object]) -> str:
    told = options.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if told:
        return str(told)
    section = "default" if profile == "default" else f"profile {profile}"
    return _section(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config", section).get("region", "us-east-1")


def _credentials(profile: str, options: dict[str, object]) -> Credentials:
    """As boto3 looks for them, as far as files go."""
    environment = os.environ
    if not options.get("profile") and environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        return Credentials(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN") or None,
        )
    found = _section(environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials", profile)
    if "aws_access_key_id" not in found or "aws_secret_access_key" not in found:
        raise NotSimple(f"no keys in the environment, nor for the profile {profile}")
    return Credentials(found["aws_access_key_id"], found["aws_secret_access_key"], found.get("aws_session_token"))


def _section(path: str, section: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(os.path.expanduser(path))
    except configparser.Error as error:
        raise NotSimple(f"{path}: {error}") from None
    return dict(parser[section]) if parser.has_section(section) else {}
