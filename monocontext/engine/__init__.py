"""Read a context: a range of characters goes in, verified text comes out.

`open.py` makes a `Reader`; `reader.py` plans a read over the frames of `frame_table.py`; `fetch/` fetches stored data,
`prefetch/` requests it ahead of time, `hints.py` predicts the reads of code, and `remote/` serves a reader to
another process.
"""
