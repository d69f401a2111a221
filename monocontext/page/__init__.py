"""Serve a page to a browser on this machine; `parts/` holds the style and scripts that all pages share."""
