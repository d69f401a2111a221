"""A shell over texts: their documents are files of folders that can only be read, and `/tmp` takes what is written.

The shell itself is bashkit, in a process of its own that has no keys and reads texts through this one.
"""
