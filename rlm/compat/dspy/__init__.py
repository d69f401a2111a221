"""Use a language model of DSPy as one of ours, and one of ours as DSPy's."""

from rlm.compat.dspy.models import FromDSPy, to_dspy

__all__ = ["FromDSPy", "to_dspy"]
