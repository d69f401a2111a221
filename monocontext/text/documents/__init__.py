"""The documents of a text: by name, and as a lazy `list` or `dict` of texts."""
