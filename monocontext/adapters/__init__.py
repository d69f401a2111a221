"""Other people's recursive language models, with a `Monocontext` as their context: one module for each host.

| host              | module            | what it takes                                                       |
|-------------------|-------------------|---------------------------------------------------------------------|
| `rlms`            | `rlms`            | `RLM(..., **rlms.arguments(context))`, `rlms.prompt(context)`       |
| `dspy`            | `dspy`            | `dspy.wrap(context)`: an input, and its `tools()`                   |
| rlm-minimal       | `rlm_minimal`     | `rlm_minimal.lazy(RLM_REPL)`: the class, with our way in            |
| `pydantic-ai-rlm` | `pydantic_ai_rlm` | `pydantic_ai_rlm.toolset(context)`                                  |
| `recursive-llm`   | `recursive_llm`   | `recursive_llm.prepared(context)`                                   |
| `minrlm`          | `minrlm`          | `minrlm.prepared(context)`                                          |
| `predict-rlm`     | `predict_rlm`     | `predict_rlm.skill(context)` and `predict_rlm.handle(context)`      |

`fast-rlm` takes none: its query crosses to another process as JSON, so no object can stand in for the text. Its way to
a text of this kind is our MCP server.

No host is imported by importing an adapter, and none is a dependency: what is needed of one is imported inside the
function that needs it. Nothing of the text is read before the host runs code that looks at it.
"""
