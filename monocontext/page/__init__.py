"""Serve a page to a browser on this machine: a careful server, and markup, style and script in one piece.

`serving` answers requests, `assembly` puts a page together, `loopback` tells addresses of this machine, `coverage`
maps what was read. `parts/` holds the style and the scripts that all pages share.
"""
