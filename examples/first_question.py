"""Ask your first question over your own text, without a key: a script plays the model, and searches the text.

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
    """Ask, and print the code of each turn, the answer, and how much was read."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="the place of your text: a directory, or s3://bucket/prefix")
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
