"""Keep the path of `rlm.utils.prompts`, as in rlm-minimal."""
