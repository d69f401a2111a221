"""Find the route to a bucket of AWS or of another server, and the proxy before it, as botocore does. No requests.

The routes of access points, FIPS, dual stack and other partitions are left to botocore.

| endpoint | bucket | URL |
|---|---|---|
| none | `a-b-c` | `https://a-b-c.s3.eu-west-1.amazonaws.com/` |
| none, `path_style` or a dot in the bucket | `a.b` | `https://s3.eu-west-1.amazonaws.com/a.b/` |
| `http://host:9000/x` | `a` | `http://host:9000/x/a/` |
| the same, `path_style=False` | `abc` | `http://abc.host:9000/x/` |
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64encode
from urllib.parse import unquote, urlsplit

from monocontext.errors import InvalidUrl
from monocontext.records import replace
from monocontext.stores.http.connection import DEFAULT_PORTS, Endpoint, Proxy
from monocontext.stores.http.route import Route
from monocontext.stores.s3.settings import NeedsBotocore, S3Options, Settings

AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
DEFAULT_REGION = "us-east-1"
"""The region of requests if none is configured. Its host name contains no region."""
_DOMAINS_BY_REGION = (
    (r"(us|eu|ap|sa|ca|me|af|il|mx)(?!-gov)-[a-z]+-\d+", "amazonaws.com"),
    (r"us-gov-[a-z]+-\d+", "amazonaws.com"),
    (r"cn-[a-z]+-\d+", "amazonaws.com.cn"),
)
"""Patterns of regions, and the domain of their hosts. All patterns are compiled where they are used: most never are."""
_ANY_REGION = r"(?=.{2,63}$)[a-z0-9]+(-[a-z0-9]+)*"  # `eu-west-1`, `auto` or `garage`
_PLAIN_BUCKET = r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*"  # `a-b-c`, but not `a--b`, `a.b` or `My_Bucket`
_DOTTED_BUCKET = r"(?=.{3,63}$)[a-z0-9]+([.-][a-z0-9]+)*"  # `a.b` too
SPECIAL_SUFFIXES = ("--x-s3", "--op-s3", "--ol-s3", "--xa-s3", "--table-s3", "-s3alias", "--s3alias")
"""Endings of the names of access points and of special buckets."""
_ENDPOINT = (
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?"
)  # `http://host:9000/x` or `https://[::1]`, but not `http://user@host`, `host:9000` or `http://host/a//b`
_HOST_NAME = r"(?=.*[a-z])[a-z0-9-]+(\.[a-z0-9-]+)*"  # `store.example`, but not `127.0.0.1`
_SYSTEM_HAS_PROXIES = os.name == "nt" or sys.platform == "darwin"  # outside of the environment


def native_route(settings: Settings, options: S3Options, bucket: str) -> Route:
    """The route to a bucket, the same as that of botocore. Raises `NeedsBotocore` if our rules do not cover it."""
    settings.check_for_s3()
    if bucket.endswith(SPECIAL_SUFFIXES):
        raise NeedsBotocore(f"{bucket} is an access point or a special bucket")
    region = options.region or settings.region() or DEFAULT_REGION
    endpoint_url = options.endpoint or settings.endpoint()
    if endpoint_url is None:
        route = route_to_aws(bucket, region, bucket_in_host=not options.path_style)
    else:
        route = route_to_server(bucket, endpoint_url, region, bucket_in_host=options.path_style is False)
    route = replace(route, endpoint=route.endpoint._replace(proxy=find_proxy(str(route.endpoint))))
    return replace(route, region="", signed=False) if options.anonymous else route


def route_to_aws(bucket: str, region: str, *, bucket_in_host: bool) -> Route:
    """The route to a bucket of AWS. A bucket with a dot is never put into the host. Raises `NeedsBotocore`."""
    domain = next((domain for regions, domain in _DOMAINS_BY_REGION if re.fullmatch(regions, region)), None)
    if domain is None:
        raise NeedsBotocore(f"the built-in client does not know the region {region}")
    host = f"s3.{domain}" if region == DEFAULT_REGION else f"s3.{region}.{domain}"
    bucket_in_host = bucket_in_host and "." not in bucket  # certificates of AWS cover one label before the host
    if not re.fullmatch(_PLAIN_BUCKET if bucket_in_host else _DOTTED_BUCKET, bucket):
        raise NeedsBotocore(f"the built-in client cannot put the bucket name {bucket} into a URL")
    host, path = (f"{bucket}.{host}", "/") if bucket_in_host else (host, f"/{bucket}/")
    return Route(Endpoint("https", host, DEFAULT_PORTS["https"]), path, region)


def route_to_server(bucket: str, endpoint_url: str, region: str, *, bucket_in_host: bool) -> Route:
    """The route to a bucket of another server. Raises `NeedsBotocore`."""
    match = re.fullmatch(_ENDPOINT, endpoint_url)
    if match is None or not 0 < int(match["port"] or DEFAULT_PORTS["http"]) < 65536:
        raise NeedsBotocore("the endpoint is not of the form http(s)://host[:port][/path]")
    scheme, path = match["scheme"], match["path"]
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    host = domain = match["host"].strip("[]").lower()
    if host.endswith(AWS_DOMAINS):
        raise NeedsBotocore("the endpoint belongs to AWS")
    if not re.fullmatch(_ANY_REGION, region) or region.startswith(("aws-", "fips-", "s3-")) or region.endswith("-fips"):
        raise NeedsBotocore(f"the built-in client does not know the region {region}")
    if bucket_in_host:
        if not (re.fullmatch(_PLAIN_BUCKET, bucket) and re.fullmatch(_HOST_NAME, host)):
            raise NeedsBotocore(f"the bucket name {bucket} cannot be put in front of {host}")
        host, path = f"{bucket}.{host}", f"{path}/"
    else:
        path = f"{path}/{bucket}/"
    return Route(Endpoint(scheme, host, port), path, region, domain=domain)


def find_proxy(url: str) -> Proxy | None:
    """The proxy for `url`, or `None`. Raises `NeedsBotocore` for one of TLS or SOCKS, `InvalidUrl` for a bad URL."""
    if not _SYSTEM_HAS_PROXIES and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # 20 ms that only those with a proxy pay

    parts = urlsplit(url)
    proxy_url = getproxies().get(parts.scheme)
    if not proxy_url or proxy_bypass(parts.netloc):
        return None
    proxy = parse_proxy(proxy_url, f"{parts.scheme}_proxy")
    if proxy is None:
        raise NeedsBotocore("the proxy is not plain HTTP")
    return proxy


def parse_proxy(url: str, variable: str) -> Proxy | None:
    """The proxy at a URL; `None` if it is not of plain HTTP. Raises `InvalidUrl` with the name of the variable."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url.removeprefix('//')}")
        port = parts.port or DEFAULT_PORTS["http"]
    except ValueError:  # brackets without an address, or an invalid port; the URL may contain a password
        raise InvalidUrl(f"{variable} must be a URL such as http://127.0.0.1:3128") from None
    if parts.scheme != "http" or not parts.hostname:
        return None
    authorization = None
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(secret.encode()).decode()}"
    return Proxy(parts.hostname, port, authorization)
