"""A shell over texts: bashkit in a process without credentials. Documents are read-only files; `/tmp` is writable."""
