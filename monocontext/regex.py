"""A module like `re` that also takes lazy texts: `from monocontext import regex as re`.

The implementation is in `monocontext.text.regex`.
"""

from monocontext.text.regex import *  # noqa: F403
from monocontext.text.regex import __all__ as __all__
from monocontext.text.regex import __dir__ as __dir__
from monocontext.text.regex import __getattr__ as __getattr__
