"""Adapters that pass a `Monocontext` to other packages, one module for each.

Recursive language models:

| host              | module            | use                                                                 |
|-------------------|-------------------|---------------------------------------------------------------------|
| `rlms`            | `rlms`            | `RLM(..., **rlms.arguments(context))`, `rlms.prompt(context)`       |
| `dspy`            | `dspy`            | `dspy.interpreter(context)`: runs its code, and has the inputs       |

No host is a dependency. No text is read
before the host runs code that reads it.

Files: with `fsspec`, every library that reads with fsspec can read texts, as `fsspec.open("monocontext://text::...")`.
With `deepagents`, the documents of a text are the files of a deep agent.
"""
