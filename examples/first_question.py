"""Your first question to your own text, without a key: a script searches as a model would, and gives what it finds.

python examples/first_question.py mine "What do search filters spare?"
python examples/first_question.py mine "What do search filters spare?" --model gpt-5    # with OPENAI_API_KEY
"""

from __future__ import annotations

import argparse

from monocontext import Monocontext
from rlm import LM, RLM, OpenAILM, ScriptedLM

LOOK = """I look at how large it is, and how it begins.
```repl
print(f"{len(context):,} characters")
print(context[:200])
```"""
SEARCH = """I search for the words of the question, and answer with the best passage.
```repl
best = context.search(QUESTION, k=3)
print([passage.place for passage in best])
FINAL(f"{best[0].place}: {best[0].text.strip()}" if best else "nothing found")
```"""


def main() -> None:
    """Ask, and print each turn's code, the answer, and what was read."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="where your text lies: a directory, s3://bucket/prefix")
    parser.add_argument("question")
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    parser.add_argument("--runner", default="confined")
    given = parser.parse_args()
    lm: LM = OpenAILM(given.model, base_url=given.base_url) if given.model else ScriptedLM([LOOK, SEARCH])
    with Monocontext.open(given.url) as context:
        rlm = RLM(lm=lm, runner=given.runner, custom_tools={"QUESTION": given.question}, verbose=True)
        completion = rlm.completion(given.question, context)
        print(f"\nAnswer: {completion.answer}\n{context.stats}")


if __name__ == "__main__":
    main()
