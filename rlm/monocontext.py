"""The lazy text, under its name in DeepRecurse: `from rlm.monocontext import Monocontext`."""

from __future__ import annotations

from monocontext import Monocontext as Monocontext
