"""`csv` that takes lazy texts. Readers need no help: they iterate, over characters as over those of a `str`."""

from __future__ import annotations

import csv
from typing import Any

from monocontext.namespace.lazies import head, is_text

SAMPLE_CHARACTERS = 64 << 10
"""As much as `csv.Sniffer` sees of a lazy text: its regexes take seconds on a megabyte."""


class Sniffer(csv.Sniffer):
    """`csv.Sniffer`, which of a lazy text sees the whole lines of the first 65,536 characters."""

    def sniff(self, sample: Any, delimiters: Any = None) -> Any:
        return super().sniff(_sampled(sample), delimiters)

    def has_header(self, sample: Any) -> bool:
        return super().has_header(_sampled(sample))


def _sampled(sample: Any) -> Any:
    if not is_text(sample):
        return sample
    text = head(sample, SAMPLE_CHARACTERS + 1)
    if len(text) <= SAMPLE_CHARACTERS:
        return text
    return text[: text.rfind("\n") + 1 or SAMPLE_CHARACTERS]
