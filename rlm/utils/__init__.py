"""The package of `rlm.utils.prompts`, as in rlm-minimal."""
