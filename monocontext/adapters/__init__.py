"""Use a `Monocontext` as the context of other recursive language models: one module for each host.

| host              | module            | what it takes                                                       |
|-------------------|-------------------|---------------------------------------------------------------------|
| `rlms`            | `rlms`            | `RLM(..., **rlms.arguments(context))`, `rlms.prompt(context)`       |
| `dspy`            | `dspy`            | `dspy.wrap(context)`: an input, and its `tools()`                   |
| rlm-minimal       | `rlm_minimal`     | `rlm_minimal.lazy(RLM_REPL)`: the class, able to take texts          |
| `pydantic-ai-rlm` | `pydantic_ai_rlm` | `pydantic_ai_rlm.toolset(context)`                                  |
| `recursive-llm`   | `recursive_llm`   | `recursive_llm.prepared(context)`                                   |
| `minrlm`          | `minrlm`          | `minrlm.lazy(RLM)`: the class, able to take texts                    |
| `predict-rlm`     | `predict_rlm`     | `predict_rlm.skill(context)` and `predict_rlm.handle(context)`      |

`fast-rlm` has no adapter: its query goes to another process as JSON, so no object can stand for the text. It can use
our MCP server instead.

Importing an adapter imports no host, and no host is a dependency: each function imports what it needs. No text is read
before the host runs code that reads it.

`fsspec` is the adapter for all that reads files of fsspec, which imports it: `fsspec.open("monocontext://text::...")`.
"""
