"""Explain a code base: what each file is for, and which files the others import. No model reads the whole code.

    python examples/explain_code.py                                      # the package `email` of this Python
    python examples/explain_code.py src/ --url s3://bucket/src --model gpt-5

Without `--model` scripts play both models. The root model's code takes the head of each file; the sub-model says what
that file is for.
"""

from __future__ import annotations

import argparse
import email
import tempfile
from pathlib import Path

from monocontext import Monocontext, publish
from monocontext.errors import AlreadyExists
from rlm import LM, RLM, OpenAILM, ScriptedLM

QUESTION = "What is each file for, and which files do the others import most?"

HEADS = """I take the beginning of each file, and let a smaller model say what the file is for.
```repl
prompts = [f"In one line: what is {name} for?\\n{text[:600]}" for name, text in context.items()]
about = dict(zip(context, llm_query_batched(prompts)))
print(len(about), "files")
```"""
IMPORTS = """Now who imports whom.
```repl
import re
from collections import Counter
named = Counter()
for name, text in context.items():
    named.update(set(re.findall(r"^ *(?:from|import) +email[. ](?:import )?(\\w+)", text, re.M)))
most = ", ".join(f"{module} ({count} files)" for module, count in named.most_common(3))
FINAL("\\n".join(f"{name}: {line}" for name, line in about.items()) + f"\\nMost imported: {most}")
```"""


def main() -> None:
    """Upload the folder, ask, and print the answer and its cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path(email.__file__).parent)
    parser.add_argument("--url", help="the place of the upload: s3://bucket/prefix, or a directory")
    parser.add_argument("--model")
    parser.add_argument("--runner", default="subprocess")
    given = parser.parse_args()
    root, sub = (OpenAILM(given.model),) * 2 if given.model else (ScriptedLM([HEADS, IMPORTS]), ScriptedLM(first_words))
    with tempfile.TemporaryDirectory() as place:
        explain(given.folder, given.url or place, root, sub, given.runner)


def explain(folder: Path, url: str, root: LM, sub: LM, runner: str) -> None:
    try:
        publish([folder], url, include=("*.py",))
    except AlreadyExists:
        print("The code is there already.")
    with Monocontext.open(url, shape="dict") as files:
        completion = RLM(lm=root, sub_lm=sub, runner=runner).completion(QUESTION, files)
        print(completion.answer)
        usage = completion.usage
        print(f"{usage.calls} calls, {usage.tokens:,} tokens, for {len(files.text):,} characters of code")


def first_words(prompt: str) -> str:
    """What a sub-model would answer: here the first line of the docstring."""
    return next((line.strip('"') for line in prompt.splitlines()[1:] if line.startswith('"""')), "it does not say")


if __name__ == "__main__":
    main()
