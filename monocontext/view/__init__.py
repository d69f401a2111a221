"""The page of `monocontext view`: the documents of a context, its text, searches and versions.

`feed` answers the requests of the page, `changes` compares two versions, and `server` serves the page.
"""
