"""Read a context: a range of characters goes in, verified text comes out.

A slice goes from `Reader.text_within` to `FrameTable.page_at` and `Fetcher.fetch_one`, which looks in the `Cache` or
queues a request and waits. A thread of the `Workers` sends the request, and checks, decodes and keeps the answer. Then
`ReadAhead.note_read` plans what may be read next, and `FrameText.slice` cuts out the characters.

`open.py` makes a `Reader`, `hints.py` predicts the reads of code, and `remote/` serves a reader to another process.
"""
