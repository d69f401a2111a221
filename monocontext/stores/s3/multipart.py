"""Upload a large object in parts, several at once.

boto3's transfer manager does this too, but it neither returns the ETag of the object nor takes a condition; a HEAD
afterwards could name another writer's version.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from monocontext.stores.protocol import CONTENT_TYPE

THRESHOLD_BYTES = 16 << 20
"""Objects above this size are sent in parts."""
_PART_BYTES = 8 << 20
_MOST_PARTS = 10_000
_WORKERS = 4


def put_in_parts(client: Any, target: dict[str, str], data: bytes, condition: dict[str, str]) -> str:
    """Write `data` and return its ETag as the server gives it (2 requests, and 1 for each part of 8 MiB or more).

    The object appears with the last request, which carries the condition. After an error the upload is aborted.
    """
    from concurrent.futures import ThreadPoolExecutor  # 3 ms that readers need not pay

    part_bytes = max(_PART_BYTES, -(-len(data) // _MOST_PARTS))
    upload = {**target, "UploadId": client.create_multipart_upload(**target, ContentType=CONTENT_TYPE)["UploadId"]}

    def send(number: int) -> dict[str, Any]:
        start = (number - 1) * part_bytes
        answer = client.upload_part(**upload, PartNumber=number, Body=data[start : start + part_bytes])
        return {"PartNumber": number, "ETag": answer["ETag"]}

    try:
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="monocontext-put") as workers:
            parts = list(workers.map(send, range(1, -(-len(data) // part_bytes) + 1)))
        answer = client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, **condition)
    except BaseException:
        with suppress(Exception):
            client.abort_multipart_upload(**upload)
        raise
    return str(answer["ETag"])
