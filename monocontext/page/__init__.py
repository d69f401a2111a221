"""Serve a page to a browser on this machine.

`serving` is the server, `assembly` joins markup, style and scripts into one page, `loopback` recognises addresses of
this machine. `parts/` holds the style and scripts that all pages share.
"""
