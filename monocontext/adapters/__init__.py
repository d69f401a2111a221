"""Use a `Monocontext` as the context of other recursive language models: one module for each host.

| host              | module            | what it takes                                                       |
|-------------------|-------------------|---------------------------------------------------------------------|
| `rlms`            | `rlms`            | `RLM(..., **rlms.arguments(context))`, `rlms.prompt(context)`       |
| `dspy`            | `dspy`            | `dspy.wrap(context)`: an input, and its `tools()`                   |
| rlm-minimal       | `rlm_minimal`     | `rlm_minimal.lazy(RLM_REPL)`: the class, able to take texts          |

`pydantic-ai-rlm`, `recursive-llm`, `minrlm` and `predict-rlm` need no adapter but a few lines of docs/hosts.md.
`fast-rlm` takes no object: its query goes to another process as JSON. It can use our MCP server instead.

Importing an adapter imports no host, and no host is a dependency: each function imports what it needs. No text is read
before the host runs code that reads it.

`fsspec` is the adapter for all that reads files of fsspec, which imports it: `fsspec.open("monocontext://text::...")`.
"""
