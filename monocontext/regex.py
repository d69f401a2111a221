"""A module like `re` that also takes lazy texts: `from monocontext import regex as re`."""

# ruff: noqa: I001  # a name on each line would be longer than this module
from monocontext.text.regex import Match as Match, Pattern as Pattern, compile as compile, escape as escape
from monocontext.text.regex import findall as findall, finditer as finditer, fullmatch as fullmatch, match as match
from monocontext.text.regex import purge as purge, required_literals as required_literals, search as search
from monocontext.text.regex import split as split, sub as sub, subn as subn
from monocontext.text.regex import __all__ as __all__, __dir__ as __dir__, __getattr__ as __getattr__
