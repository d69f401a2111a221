"""Modules of rlm-minimal by the names that they have there: `from rlm.utils.prompts import build_system_prompt`."""
