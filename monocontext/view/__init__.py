"""The page of `monocontext view`: the documents of a context, its text, searches and versions.

`feed` serves the page and answers its requests, and `changes` compares two versions.
"""
