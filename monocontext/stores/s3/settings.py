"""The settings for S3 in the environment, the shared AWS files and one profile, read in botocore's order. No requests.

It also finds the routes of buckets and the proxy for a URL.
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64encode
from collections.abc import Mapping
from shlex import split
from typing import Any
from urllib.parse import unquote, urlsplit

from monocontext.stores.http.connection import DEFAULT_PORTS, Endpoint, Proxy
from monocontext.stores.http.route import Route


class UnsupportedBySigner(Exception):
    """A setting that only botocore implements, so botocore must prepare the request. The message names the setting."""


class NoIdentity(Exception):
    """Credentials cannot be read. The message is one line that names the source and contains no secret."""


class NothingFound(NoIdentity):
    """No source has credentials. The message names the sources that were tried."""


def _check_line(text: object, name: str) -> None:
    """Raise `NoIdentity` for a value with a control character, which cannot be sent in a header."""
    if isinstance(text, str) and any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
        raise NoIdentity(f"{name} contains a line break or another control character: remove it")


_OF_BOTOCORE = (
    "api_versions", "auth_scheme_preference", "data_path", "defaults_mode", "proxy_ca_bundle", "proxy_client_cert",
    "proxy_use_forwarding_for_https", "s3", "s3_us_east_1_regional_endpoint", "sigv4a_signing_region_set",
    "use_dualstack_endpoint", "use_fips_endpoint",
)  # fmt: skip
"""Settings of a profile that only botocore implements; `AWS_DATA_PATH` and so on are the variables."""
_SENT_IN_HEADERS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url")
Section = dict[str, Any]
"""The values of a section by name. The value of an indented block begins with a line break."""


class Settings:
    """The settings of one profile. Raises `NoIdentity` for a missing profile, and for a file that cannot be parsed."""

    def __init__(
        self, environment: Mapping[str, str], profile: str | None, config_path: str, credentials_path: str
    ) -> None:
        self.environment = environment
        for variable, text in environment.items():
            if variable.startswith("AWS_") or variable.lower().endswith("_proxy"):
                _check_line(text, f"the variable {variable}")
        self.credentials_path = credentials_path
        self.unreadable: list[str] = []
        """Files that may not be read. They count as empty, as in botocore, and error messages name them."""
        profiles = _profiles(self._read(config_path))
        credentials = self._read(self.credentials_path)
        for title, section in credentials.items():
            profiles[title] = profiles.get(title, {}) | section
        self.profile_is_explicit = profile is not None
        """Whether the caller named the profile; then credentials in the environment do not count."""
        named = profile
        for name in ("AWS_DEFAULT_PROFILE", "AWS_PROFILE"):
            named = environment.get(name) if named is None else named
        if named is not None and named not in profiles:
            hidden = f"; unreadable: {', '.join(self.unreadable)}" if self.unreadable else ""
            raise NoIdentity(f"The config profile ({named}) could not be found{hidden}")
        self.profile_name = named or "default"
        self.profile: Section = profiles.get("default" if named is None else named, {})
        self.credentials: Section = credentials.get(self.profile_name, {})
        """The section of the profile in the credentials file."""
        for name in _SENT_IN_HEADERS:
            _check_line(self.profile.get(name), f"{name} in the profile {self.profile_name}")

    def _read(self, path: str) -> dict[str, Section]:
        if not os.path.isfile(path):
            return {}
        try:
            with open(path) as file:
                text = file.read()
        except OSError as error:
            self.unreadable.append(f"{path} ({error.strerror})")
            return {}
        except UnicodeDecodeError:
            raise NoIdentity(f"{path} cannot be parsed: it is not UTF-8 text") from None
        return _parse(text, path)

    def value(self, variable: str, name: str) -> Any:
        """The value of a variable, else of a setting of the profile."""
        return self.environment.get(variable, self.profile.get(name))

    def region(self) -> str | None:
        """The configured region."""
        region = self.value("AWS_DEFAULT_REGION", "region")
        if region == "":
            raise UnsupportedBySigner("the configured region is empty")
        return region if region is None else str(region)

    def endpoint(self) -> str | None:
        """The configured URL of S3."""
        ignored = self.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls")
        if str(ignored).lower() == "true":
            return None
        for variable in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            if url := self.environment.get(variable):
                return url
        if "services" in self.profile:
            raise UnsupportedBySigner(f"the profile {self.profile_name} names a services section")
        return str(self.profile.get("endpoint_url") or "") or None

    def ca_bundle(self) -> str | None:
        """The path of the configured certificates; `None` for the default."""
        return self.value("AWS_CA_BUNDLE", "ca_bundle") or self.environment.get("REQUESTS_CA_BUNDLE")

    def check_for_s3(self) -> None:
        """Raise `UnsupportedBySigner` for a setting that only botocore implements."""
        for name in _OF_BOTOCORE:
            if (variable := f"AWS_{name.upper()}") in self.environment:
                raise UnsupportedBySigner(f"{variable} is set")
            if name in self.profile:
                raise UnsupportedBySigner(f"{name} is set in the profile {self.profile_name}")
        if os.path.isdir(os.path.expanduser("~/.aws/models")):
            raise UnsupportedBySigner("~/.aws/models may define other endpoints")


def _parse(text: str, path: str) -> dict[str, Section]:
    """The sections of a file by name. Raises `NoIdentity`."""
    from configparser import Error, RawConfigParser  # 2 ms that variables in the environment need not pay

    parser = RawConfigParser()
    try:
        parser.read_string(text)
        sections = {name: dict(parser.items(name)) for name in parser.sections()}
        for value in (value for section in sections.values() for value in section.values()):
            if value.startswith("\n") and not all("=" in line for line in value.splitlines() if line.strip()):
                raise ValueError("an indented block with a line that is not a setting")
    except (Error, ValueError) as error:
        # The line itself may contain a secret, so the message has only its number.
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), None)
        raise NoIdentity(f"{path} cannot be parsed{f': line {line}' if line else ''}") from None
    return sections


def _profiles(config: Mapping[str, Section]) -> dict[str, Section]:
    """The profiles in a configuration by name: `[default]`, `[profile name]`, and `[profile "a name"]`."""
    results: dict[str, Section] = {}
    for title, section in config.items():
        if title.startswith("profile"):
            try:
                words = split(title)
            except ValueError:  # an unterminated quote: botocore ignores the section too
                continue
            if len(words) == 2:
                results[words[1]] = section
    if "default" in config:
        results["default"] = config["default"]
    return results


_SYSTEM_HAS_ITS_OWN = os.name == "nt" or sys.platform == "darwin"


def find_proxy(url: str) -> Proxy | None:
    """The proxy for `url`, or `None`. Raises `UnsupportedBySigner` for one over TLS or SOCKS."""
    if not _SYSTEM_HAS_ITS_OWN and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # 20 ms, where there may be a proxy

    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    if not (proxy_url := getproxies().get(parts.scheme)):
        return None
    if (proxy := parse_proxy(proxy_url)) is None:
        raise UnsupportedBySigner("the proxy is not plain HTTP")
    return proxy


def parse_proxy(url: str) -> Proxy | None:
    """The proxy at a URL; `None` if its scheme is not plain HTTP."""
    parts = urlsplit(url if "://" in url else f"http://{url.removeprefix('//')}")
    if parts.scheme != "http" or not parts.hostname:
        return None
    pair = None
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        pair = f"Basic {b64encode(secret.encode()).decode()}"
    return Proxy(parts.hostname, parts.port or DEFAULT_PORTS["http"], pair)


# -- routes ------------------------------------------------------------------------------------------------------------

AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
DEFAULT_REGION = "us-east-1"
"""The region of requests if none is configured. Its host name contains no region."""
_AWS_SUFFIXES = (
    (r"(us|eu|ap|sa|ca|me|af|il|mx)(?!-gov)-[a-z]+-\d+", "amazonaws.com"),
    (r"us-gov-[a-z]+-\d+", "amazonaws.com"),
    (r"cn-[a-z]+-\d+", "amazonaws.com.cn"),
)
"""Patterns of regions, and the domain of their hosts. All patterns are compiled where they are used: most never are."""
_ANY_REGION = r"(?=.{2,63}$)[a-z0-9]+(-[a-z0-9]+)*"
_PLAIN_BUCKET = r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*"
_DOTTED_BUCKET = r"(?=.{3,63}$)[a-z0-9]+([.-][a-z0-9]+)*"
SPECIAL_SUFFIXES = ("--x-s3", "--op-s3", "--ol-s3", "--xa-s3", "--table-s3", "-s3alias", "--s3alias")
"""Endings of the names of access points and of special buckets."""
_ENDPOINT = (
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?"
)
_HOST_NAME = r"(?=.*[a-z])[a-z0-9-]+(\.[a-z0-9-]+)*"


def to_aws(bucket: str, region: str, path_style: bool) -> Route:
    """The route to a bucket of AWS."""
    suffix = next((suffix for regions, suffix in _AWS_SUFFIXES if re.fullmatch(regions, region)), None)
    if suffix is None:
        raise UnsupportedBySigner(f"the region {region} is not one that the built-in client knows")
    host = f"s3.{suffix}" if region == DEFAULT_REGION else f"s3.{region}.{suffix}"
    bucket_in_host = not path_style and "." not in bucket
    if not re.fullmatch(_PLAIN_BUCKET if bucket_in_host else _DOTTED_BUCKET, bucket):
        raise UnsupportedBySigner(f"the bucket name {bucket} is not one that the built-in client can put into a URL")
    host, path = (f"{bucket}.{host}", "/") if bucket_in_host else (host, f"/{bucket}/")
    return Route(Endpoint("https", host, DEFAULT_PORTS["https"]), path, region)


def to_server(bucket: str, endpoint_url: str, region: str, bucket_in_host: bool) -> Route:
    """The route to a bucket of another server."""
    match = re.fullmatch(_ENDPOINT, endpoint_url)
    if match is None:
        raise UnsupportedBySigner("the endpoint is not of the form http(s)://host[:port][/path]")
    scheme, path = match["scheme"], match["path"]
    host = domain = match["host"].strip("[]").lower()
    if host.endswith(AWS_DOMAINS):
        raise UnsupportedBySigner("the endpoint belongs to AWS")
    if not re.fullmatch(_ANY_REGION, region) or region.startswith(("aws-", "fips-", "s3-")) or region.endswith("-fips"):
        raise UnsupportedBySigner(f"the region {region} is not one that the built-in client knows")
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise UnsupportedBySigner("the endpoint is not of the form http(s)://host[:port][/path]")
    if bucket_in_host:
        if not (re.fullmatch(_PLAIN_BUCKET, bucket) and re.fullmatch(_HOST_NAME, host)):
            raise UnsupportedBySigner(f"the bucket name {bucket} cannot be put in front of {host}")
        host, path = f"{bucket}.{host}", f"{path}/"
    else:
        path = f"{path}/{bucket}/"
    return Route(Endpoint(scheme, host, port), path, region, domain=domain)
