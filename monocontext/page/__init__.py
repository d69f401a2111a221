"""Serve a page to a browser on this machine: a careful server, and markup, style and script in one piece.

`serving` answers requests, `assembly` builds a page, `loopback` recognises addresses of this machine, `coverage` maps
reads. `parts/` holds the style and the scripts that all pages share.
"""
