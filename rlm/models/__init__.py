"""Ask language models: one module for each vendor, and a registry by name."""
