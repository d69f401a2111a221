"""The page of `monocontext view`: the documents of a context, its text, searches, versions and reads.

`feed` answers the requests of the page, `changes` compares two versions, `session` records reads, `recorded_runs` loads
those of recorded runs, and `server` serves the page.
"""
