"""Name the lazy text as DeepRecurse does: `from rlm.monocontext import Monocontext`."""

from __future__ import annotations

from monocontext import Monocontext as Monocontext
