"""Find the route to a bucket as botocore does, but without its import, for the endpoints below.

Other endpoints, such as access points, FIPS, dual stack and other partitions, raise `UnsupportedBySigner`: botocore is
asked for their routes.

| endpoint | bucket | URL |
|---|---|---|
| none | `a-b-c` | `https://a-b-c.s3.eu-west-1.amazonaws.com/` |
| none, `path_style` or a dot in the bucket | `a.b` | `https://s3.eu-west-1.amazonaws.com/a.b/` |
| `http://host:9000/x` | `a` | `http://host:9000/x/a/` |
| the same, `path_style=False` | `abc` | `http://abc.host:9000/x/` |
"""

from __future__ import annotations

import re

from monocontext.records import replace
from monocontext.stores.http.route import DEFAULT_PORTS, Endpoint, Route
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.settings import Settings, UnsupportedBySigner, find_proxy

AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_GLOBAL = "us-east-1"
"""The region of requests if none is configured. Its host name contains no region."""
_AWS_SUFFIXES = (
    (re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)(?!-gov)-[a-z]+-\d+"), "amazonaws.com"),
    (re.compile(r"us-gov-[a-z]+-\d+"), "amazonaws.com"),
    (re.compile(r"cn-[a-z]+-\d+"), "amazonaws.com.cn"),
)
_ANY_REGION = re.compile(r"(?=.{2,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_PLAIN_BUCKET = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_DOTTED_BUCKET = re.compile(r"(?=.{3,63}$)[a-z0-9]+([.-][a-z0-9]+)*")
_ALIASES = ("--x-s3", "--op-s3", "--ol-s3", "--xa-s3", "--table-s3", "-s3alias", "--s3alias")
"""Endings of the names of access points and of special buckets."""
_ENDPOINT = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?"
)
_HOST_NAME = re.compile(r"(?=.*[a-z])[a-z0-9-]+(\.[a-z0-9-]+)*")


def native_route(settings: Settings, options: S3Options, bucket: str) -> Route:
    """The route to a bucket, the same as that of botocore. Raises `UnsupportedBySigner`."""
    settings.check_for_s3()
    if bucket.endswith(_ALIASES):
        raise UnsupportedBySigner(f"{bucket} is an access point or a special bucket")
    region, given = options.region or settings.region(), options.endpoint or settings.endpoint("s3")
    if given is None:
        route = _to_aws(bucket, region or _GLOBAL, bool(options.path_style))
    else:
        route = _to_server(bucket, given, region or _GLOBAL, options.path_style is False)
    if proxy := find_proxy(str(route.endpoint)):
        route = replace(route, endpoint=route.endpoint._replace(proxy=proxy))
    return replace(route, region="", signed=False) if options.anonymous else route


def _to_aws(bucket: str, region: str, path_style: bool) -> Route:
    suffix = next((suffix for regions, suffix in _AWS_SUFFIXES if regions.fullmatch(region)), None)
    if suffix is None:
        raise UnsupportedBySigner(f"the region {region}")
    host = f"s3.{suffix}" if region == _GLOBAL else f"s3.{region}.{suffix}"
    in_path = path_style or "." in bucket
    if not (_DOTTED_BUCKET if in_path else _PLAIN_BUCKET).fullmatch(bucket):
        raise UnsupportedBySigner(f"the bucket name {bucket}")
    host, path = (host, f"/{bucket}/") if in_path else (f"{bucket}.{host}", "/")
    return Route(Endpoint("https", host, DEFAULT_PORTS["https"]), path, region)


def _to_server(bucket: str, url: str, region: str, virtual: bool) -> Route:
    found = _ENDPOINT.fullmatch(url)
    if found is None:
        raise UnsupportedBySigner("the endpoint has an unusual form")
    scheme, path = found["scheme"], found["path"]
    host = domain = found["host"].strip("[]").lower()
    if host.endswith(AWS_DOMAINS):
        raise UnsupportedBySigner("the endpoint belongs to AWS")
    if not _ANY_REGION.fullmatch(region) or region.startswith(("aws-", "fips-", "s3-")) or region.endswith("-fips"):
        raise UnsupportedBySigner(f"the region {region}")
    port = int(found["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise UnsupportedBySigner("the endpoint has an unusual form")
    if virtual:
        if not (_PLAIN_BUCKET.fullmatch(bucket) and _HOST_NAME.fullmatch(host)):
            raise UnsupportedBySigner(f"the bucket name {bucket} in front of {host}")
        host, path = f"{bucket}.{host}", f"{path}/"
    else:
        path = f"{path}/{bucket}/"
    return Route(Endpoint(scheme, host, port), path, region, domain=domain)
