"""`csv` that takes lazy texts. Only `Sniffer` differs, since readers iterate over a text."""

from __future__ import annotations

import csv
from typing import Any

from monocontext.text.namespace.lazy_values import is_text, read_head

SAMPLE_CHARACTERS = 64 << 10
"""The characters of a lazy text that `csv.Sniffer` sees: its patterns take seconds for a megabyte."""


class Sniffer(csv.Sniffer):
    """`csv.Sniffer` that looks only at the first lines of a lazy text, up to 65,536 characters."""

    def sniff(self, sample: Any, delimiters: Any = None) -> Any:
        return super().sniff(_take_sample(sample), delimiters)

    def has_header(self, sample: Any) -> bool:
        return super().has_header(_take_sample(sample))


def _take_sample(sample: Any) -> Any:
    if not is_text(sample):
        return sample
    text = read_head(sample, SAMPLE_CHARACTERS + 1)
    if len(text) <= SAMPLE_CHARACTERS:
        return text
    return text[: text.rfind("\n") + 1 or SAMPLE_CHARACTERS]
