"""Read a context: a range of characters in, verified text out.

`open.py` makes a `Reader`; `reader.py` plans a read over the frames of `frame_table.py`; `fetch/` brings what is
stored, `prefetch/` asks for it ahead of time, `hints/` predicts from code what will be read, `remote/` serves a
reader to another process.
"""
