"""Answer HTTP requests for the objects of a store as a bucket of S3 does. No I/O but that of the store."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import quote
from xml.sax.saxutils import escape

from monocontext.errors import AccessDenied, AlreadyExists, ContextChanged, InvalidUrl, MonocontextError, NotFound
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.testing.http_faults import HttpReply, error_reply

_MOST_LISTED = 1000  # objects in one answer to a LIST, as on S3
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")  # bytes=0-99, bytes=100- and bytes=-100 (the last 100), not bytes=0-1,5-9


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One complete request."""

    method: str
    path: str  # the path, decoded; it begins with a slash
    query: Mapping[str, str] = field(default_factory=dict)  # parameters by name, decoded
    headers: Mapping[str, str] = field(default_factory=dict)  # by name in lower case
    body: bytes = field(default=b"", repr=False)


class Bucket:
    """Answers requests for the objects of any store: one request in, one reply out. Safe for use by many threads.

    It supports the requests of boto3 and of `S3Store`: GET with a range and If-Match, HEAD, ListObjectsV2, PUT with a
    condition, DELETE, and uploads in parts. It does not support signatures, versions, access control, copies, chunked
    bodies, delimiters of lists, or checksums of the body.
    """

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self._uploads: dict[str, dict[int, bytes]] = {}
        """The parts of each unfinished upload, by the ID of the upload and the number of the part."""

    def verb_and_key(self, request: HttpRequest) -> tuple[str, str]:
        """The verb and key of a request, as fault scripts name them: a GET or HEAD of the bucket itself is a `LIST`."""
        key = request.path.removeprefix(f"/{self.name}").removeprefix("/")
        return ("LIST" if not key and request.method in ("GET", "HEAD") else request.method), key

    def answer(self, request: HttpRequest) -> HttpReply:
        """Carry out a request. A mistake of the client gives an error reply, not an exception."""
        if f"{request.path}/".split("/")[1] != self.name:
            return error_reply(404, "NoSuchBucket")
        is_chunked = any("chunked" in request.headers.get(f"{kind}-encoding", "") for kind in ("content", "transfer"))
        if request.query.get("delimiter") or is_chunked:
            return error_reply(501, "NotImplemented")
        verb, key = self.verb_and_key(request)
        try:
            match verb:
                case "LIST":
                    return self._list(request) if request.method == "GET" else HttpReply(200)
                case "GET" | "HEAD":
                    return self._read(key, request)
                case _ if "uploads" in request.query or "uploadId" in request.query:
                    return self._upload(key, request)
                case "PUT":
                    return HttpReply(200, headers={"ETag": self._put(key, request.body, request)})
                case "DELETE":
                    self.store.delete(key)
                    return HttpReply(204)
        except NotFound:
            return error_reply(404, "NoSuchKey")
        except (AlreadyExists, ContextChanged):
            return error_reply(412, "PreconditionFailed")
        except AccessDenied:
            return error_reply(403, "AccessDenied")
        except (InvalidUrl, ValueError) as error:
            return error_reply(400, "InvalidArgument", escape(str(error)))
        except MonocontextError as error:
            return error_reply(500, "InternalError", escape(str(error)))
        return error_reply(501, "NotImplemented")

    def _read(self, key: str, request: HttpRequest) -> HttpReply:
        """The reply to a GET or HEAD of an object."""
        info = self.store.head(key)
        size_bytes, range_header = info.size_bytes, request.headers.get("range", "")
        headers = {
            "ETag": f'"{info.etag}"',
            "Last-Modified": formatdate(info.modified_seconds, usegmt=True),
            "Content-Type": "binary/octet-stream",
        }
        if request.headers.get("if-match", "").strip('"') not in ("", "*", info.etag):
            return error_reply(412, "PreconditionFailed")
        span = _requested_span(range_header, size_bytes)
        if span is None:
            return error_reply(416, "InvalidRange", headers={"Content-Range": f"bytes */{size_bytes}"})
        if request.method == "HEAD":
            return HttpReply(200, headers=headers | {"Content-Length": str(size_bytes)})
        start, stop = span
        body = self.store.get_range(key, start, stop - start, etag=info.etag).data if stop > start else b""
        if not range_header:
            return HttpReply(200, body, headers)
        return HttpReply(206, body, headers | {"Content-Range": f"bytes {start}-{stop - 1}/{size_bytes}"})

    def _put(self, key: str, data: bytes, request: HttpRequest) -> str:
        """Store an object under the conditions of a request; returns its ETag in quotes."""
        if_match = request.headers.get("if-match", "").strip('"') or None
        etag = self.store.put(key, data, if_absent=request.headers.get("if-none-match") == "*", if_match=if_match)
        return f'"{etag}"'

    def _list(self, request: HttpRequest) -> HttpReply:
        """The reply to a ListObjectsV2. The continuation token is the last key of the previous reply."""
        prefix, last_key = request.query.get("prefix", ""), request.query.get("continuation-token", "")
        most_keys = min(_MOST_LISTED, int(request.query.get("max-keys") or _MOST_LISTED))
        remaining = [info for info in self.store.list(prefix) if info.key > last_key]
        entries, is_truncated = remaining[:most_keys], len(remaining) > most_keys
        head = f"<Name>{self.name}</Name><Prefix>{_encode_key(prefix)}</Prefix><EncodingType>url</EncodingType>"
        head += f"<KeyCount>{len(entries)}</KeyCount><IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
        if is_truncated:
            head += f"<NextContinuationToken>{escape(entries[-1].key)}</NextContinuationToken>"
        return _xml(f"<ListBucketResult>{head}{''.join(map(_list_entry, entries))}</ListBucketResult>")

    def _upload(self, key: str, request: HttpRequest) -> HttpReply:
        """Begin, continue, complete or abort an upload in parts."""
        upload_id = request.query.get("uploadId") or uuid.uuid4().hex
        fields = f"<Bucket>{self.name}</Bucket><Key>{escape(key)}</Key>"
        if request.method == "POST" and "uploads" in request.query:
            self._uploads[upload_id] = {}
            fields += f"<UploadId>{upload_id}</UploadId>"
            return _xml(f"<InitiateMultipartUploadResult>{fields}</InitiateMultipartUploadResult>")
        parts = self._uploads.get(upload_id) if request.method == "PUT" else self._uploads.pop(upload_id, None)
        if request.method == "DELETE":
            return HttpReply(204)
        if parts is None:
            return error_reply(404, "NoSuchUpload")
        if request.method == "PUT":
            parts[int(request.query["partNumber"])] = request.body
            return HttpReply(200, headers={"ETag": f'"{hashlib.sha256(request.body).hexdigest()[:32]}"'})
        etag = self._put(key, b"".join(parts[number] for number in sorted(parts)), request)
        fields += f"<ETag>{escape(etag)}</ETag>"
        return _xml(f"<CompleteMultipartUploadResult>{fields}</CompleteMultipartUploadResult>")


def _requested_span(range_header: str, size_bytes: int) -> tuple[int, int] | None:
    """The bytes [start, stop) that a Range header requests, or all without a header; `None` if no such byte exists."""
    match = _RANGE.fullmatch(range_header)
    if not match or match[0] == "bytes=-":
        return 0, size_bytes
    first, last = match.groups()
    if not first:  # the last bytes
        start, stop = max(0, size_bytes - int(last)), size_bytes
    else:
        start, stop = int(first), min(size_bytes, int(last) + 1 if last else size_bytes)
    return (start, stop) if start < stop else None


def _list_entry(info: ObjectInfo) -> str:
    """An object in the reply to a ListObjectsV2."""
    modified = datetime.fromtimestamp(info.modified_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    fields = f"<Key>{_encode_key(info.key)}</Key><LastModified>{modified}</LastModified>"
    fields += f"<ETag>&quot;{escape(info.etag)}&quot;</ETag><Size>{info.size_bytes}</Size>"
    return f"<Contents>{fields}<StorageClass>STANDARD</StorageClass></Contents>"


def _encode_key(text: str) -> str:
    return escape(quote(text, safe="/"))


def _xml(body: str) -> HttpReply:
    data = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'
    return HttpReply(200, data.encode(), {"Content-Type": "application/xml"})
