"""A shell over texts: bashkit in a process without keys. Documents are read-only files; `/tmp` can be written."""
