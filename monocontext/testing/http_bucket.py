"""Answer S3 requests for the objects of any store: one HTTP request in, one reply out. No sockets.

It supports the requests of boto3 and of `S3Store`: GET with a range and If-Match, HEAD, ListObjectsV2, PUT with a
condition, DELETE, and uploads in parts. It does not support signatures, versions, access control, copies, and checksums
of the body.
"""

from __future__ import annotations

import hashlib
import re
import threading
import uuid
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import quote
from xml.sax.saxutils import escape

from monocontext.errors import AccessDenied, AlreadyExists, ContextChanged, InvalidUrl, MonocontextError, NotFound
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.testing.http_faults import error_reply
from monocontext.testing.http_wire import HttpReply, HttpRequest

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_MAX_LISTED = 1000
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Bucket:
    """One bucket whose objects are those of `store`. Safe for use by many threads."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._lock = threading.Lock()

    def place(self, request: HttpRequest) -> tuple[str, str]:
        """The verb and key of a request, as fault scripts name them: a GET or HEAD of the bucket itself is a `LIST`."""
        key = request.path.removeprefix(f"/{self.name}").removeprefix("/")
        return ("LIST" if not key and request.method in ("GET", "HEAD") else request.method), key

    def answer(self, request: HttpRequest) -> HttpReply:
        """Carry out a request. A mistake of the client gives an error reply, not an exception."""
        if f"{request.path}/".split("/")[1] != self.name:
            return error_reply(404, "NoSuchBucket")
        verb, key = self.place(request)
        try:
            match verb:
                case "LIST":
                    return self._list(request) if request.method == "GET" else HttpReply(200)
                case "GET" | "HEAD":
                    return self._read(key, request)
                case "PUT" if "uploadId" in request.query:
                    return self._put_part(request)
                case "PUT":
                    return self._put(key, request.body, request)
                case "POST" if "uploads" in request.query:
                    return self._begin_upload(key)
                case "POST" if "uploadId" in request.query:
                    return self._end_upload(key, request)
                case "DELETE" if "uploadId" in request.query:
                    return self._drop_upload(request)
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
        info = self.store.head(key)
        headers = _object_headers(info)
        wanted, match = request.headers.get("range", ""), request.headers.get("if-match", "").strip('"')
        if match not in ("", "*", info.etag):
            return error_reply(412, "PreconditionFailed")
        if request.headers.get("if-none-match", "").strip('"') == info.etag:
            return HttpReply(304, headers=headers)
        span = _span(wanted, info.size_bytes)
        if span is None:
            size = {"Content-Range": f"bytes */{info.size_bytes}"}
            return error_reply(416, "InvalidRange", headers=size)
        if request.method == "HEAD":
            return HttpReply(200, headers=headers | {"Content-Length": str(info.size_bytes)})
        start, stop = span
        body = self.store.get_range(key, start, stop - start, etag=info.etag).data if stop > start else b""
        if not wanted:
            return HttpReply(200, body, headers)
        return HttpReply(206, body, headers | {"Content-Range": f"bytes {start}-{stop - 1}/{info.size_bytes}"})

    def _put(self, key: str, data: bytes, request: HttpRequest) -> HttpReply:
        match = request.headers.get("if-match", "").strip('"') or None
        etag = self.store.put(key, data, if_absent=request.headers.get("if-none-match") == "*", if_match=match)
        return HttpReply(200, headers={"ETag": f'"{etag}"'})

    def _list(self, request: HttpRequest) -> HttpReply:
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        most = min(_MAX_LISTED, int(request.query.get("max-keys") or _MAX_LISTED))
        after = request.query.get("continuation-token") or request.query.get("start-after", "")
        entries: dict[str, str] = {}
        is_cut = False
        for info in self.store.list(prefix):
            name = _folder(info.key, prefix, delimiter) or info.key
            if info.key <= after or name <= after or name in entries:
                continue
            if is_cut := len(entries) == most:
                break
            is_folder = name != info.key
            entries[name] = (
                f"<CommonPrefixes><Prefix>{_name(name)}</Prefix></CommonPrefixes>" if is_folder else _list_entry(info)
            )
        token = (
            f"<NextContinuationToken>{escape(list(entries)[-1])}</NextContinuationToken>" if is_cut and entries else ""
        )
        head = f"<Name>{self.name}</Name><Prefix>{_name(prefix)}</Prefix><EncodingType>url</EncodingType>"
        head += f"<KeyCount>{len(entries)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
        return _xml(f"<ListBucketResult>{head}{token}{''.join(entries.values())}</ListBucketResult>")

    # -- uploads in parts ------------------------------------------------------------------------------------------

    def _begin_upload(self, key: str) -> HttpReply:
        name = uuid.uuid4().hex
        with self._lock:
            self._uploads[name] = {}
        fields = f"<Bucket>{self.name}</Bucket><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
        return _xml(f"<InitiateMultipartUploadResult>{fields}</InitiateMultipartUploadResult>")

    def _put_part(self, request: HttpRequest) -> HttpReply:
        with self._lock:
            parts = self._uploads.get(request.query["uploadId"])
            if parts is None:
                return error_reply(404, "NoSuchUpload")
            parts[int(request.query["partNumber"])] = request.body
        return HttpReply(200, headers={"ETag": f'"{hashlib.sha256(request.body).hexdigest()[:32]}"'})

    def _end_upload(self, key: str, request: HttpRequest) -> HttpReply:
        with self._lock:
            parts = self._uploads.pop(request.query["uploadId"], None)
        if parts is None:
            return error_reply(404, "NoSuchUpload")
        done = self._put(key, b"".join(parts[number] for number in sorted(parts)), request)
        fields = f"<Bucket>{self.name}</Bucket><Key>{escape(key)}</Key><ETag>{escape(done.headers['ETag'])}</ETag>"
        return _xml(f"<CompleteMultipartUploadResult>{fields}</CompleteMultipartUploadResult>")

    def _drop_upload(self, request: HttpRequest) -> HttpReply:
        with self._lock:
            self._uploads.pop(request.query["uploadId"], None)
        return HttpReply(204)


def _object_headers(info: ObjectInfo) -> dict[str, str]:
    """Headers of a reply about an object."""
    return {
        "ETag": f'"{info.etag}"',
        "Last-Modified": formatdate(info.modified_seconds, usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Type": "binary/octet-stream",
    }


def _span(wanted: str, size: int) -> tuple[int, int] | None:
    """The bytes [start, stop) in a Range header; `None` if the object has none of them."""
    match = _RANGE.fullmatch(wanted)
    if not match or match[0] == "bytes=-":
        return 0, size
    if not match[1]:  # the last bytes
        start, stop = max(0, size - int(match[2])), size
    else:
        start, stop = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    return (start, stop) if start < stop else None


def _folder(key: str, prefix: str, delimiter: str) -> str:
    """The key up to the first delimiter after the prefix, which is included; empty if there is none."""
    rest = key[len(prefix) :]
    return prefix + rest[: rest.index(delimiter) + len(delimiter)] if delimiter and delimiter in rest else ""


def _list_entry(info: ObjectInfo) -> str:
    offset = datetime.fromtimestamp(info.modified_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    fields = (
        f"<Key>{_name(info.key)}</Key><LastModified>{offset}</LastModified><ETag>&quot;{escape(info.etag)}&quot;</ETag>"
    )
    return f"<Contents>{fields}<Size>{info.size_bytes}</Size><StorageClass>STANDARD</StorageClass></Contents>"


def _name(text: str) -> str:
    return escape(quote(text, safe="/"))


def _xml(body: str) -> HttpReply:
    return HttpReply(200, (_XML + body).encode(), {"Content-Type": "application/xml"})
