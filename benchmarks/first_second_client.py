"""Find a needle in one way in a new process: `python first_second_client.py WAY KEY NEEDLE`.

It is run by path, so that nothing is imported before the clock starts. It opens or downloads the text, finds the needle
and takes the window around it. It prints JSON: seconds from the start of this script (`cold`), the same for a copy of
the text in the now warm process (`warm`), and CPU seconds until the first answer (`cpu`).
"""

from __future__ import annotations

import time

_BEGAN, _CPU_BEGAN = time.perf_counter(), time.process_time()

import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

BUCKET, TEXT = "bucket", "text"  # `first_second` stores the text there
WINDOW_CHARACTERS = 2000  # on each side of the needle


def by_monocontext(key: str, needle: str) -> str:
    from monocontext import Monocontext

    with Monocontext.open(f"s3://{BUCKET}/{key}") as context:
        offset = context.find(needle)
        return str(context[offset - WINDOW_CHARACTERS : offset + WINDOW_CHARACTERS])


def by_whole_get(key: str, needle: str) -> str:
    """Find the needle with the cheapest client: one unsigned GET of the standard library."""
    from http.client import HTTPConnection

    connection = HTTPConnection(os.environ["AWS_ENDPOINT_URL_S3"].split("//")[1])
    connection.request("GET", f"/{BUCKET}/{key}/{TEXT}")
    text = str(connection.getresponse().read(), "utf-8")
    offset = text.find(needle)
    return text[offset - WINDOW_CHARACTERS : offset + WINDOW_CHARACTERS]


WAYS = {"monocontext": by_monocontext, "GET whole, http.client": by_whole_get}


def main() -> None:
    way, key, needle = sys.argv[1:]
    find_window = WAYS[way]
    result = find_window(key, needle)
    cold, cpu = time.perf_counter() - _BEGAN, time.process_time() - _CPU_BEGAN
    began = time.perf_counter()
    again = find_window(f"{key}-again", needle)
    warm = time.perf_counter() - began
    if result != again or needle not in result:
        raise AssertionError(f"{way} read a window without the needle, or a different window from the second copy")
    print(json.dumps({"cold": cold, "warm": warm, "cpu": cpu}))


if __name__ == "__main__":
    main()
