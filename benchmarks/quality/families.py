"""Make the questions of each family by a seed, with their evidence, the answer, and cells that find it.

The oracle is a scripted model that knows the answers, so the benchmark needs no key. As the root model it writes the
cells of the question. To a single prompt it gives the right answer if the prompt holds all of the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from benchmarks.quality.questions import Planted, Question, Rule
from rlm import ScriptedLM
from rlm.prompts.system import QUESTION_OPENS, conversation

_CITIES = ("Lisbon", "Oslo", "Lima", "Cairo", "Quito", "Riga", "Accra", "Hanoi", "Turin", "Perth")
_PEOPLE = ("Ada", "Boris", "Chen", "Dora", "Emre", "Fatou", "Goro", "Hana", "Ines", "Jomo")
_LABELS = ("billing", "shipping", "praise")
ROWS = 60
MEANINGS = {  # messages by subject; no message contains the word
    "money": ("I was charged twice for one order.", "My refund is not on my account.", "The invoice has a wrong sum."),
    "delivery": ("The parcel never came.", "The box stood in the rain for a day.", "The courier rang at another door."),
    "thanks": ("You made my mother very happy.", "Best support that I ever had.", "I will come back for sure."),
}
CLASSIFY = "Is this message about money, delivery or thanks? Answer with one word.\n\n"


def make_questions(families: tuple[str, ...], count: int, seed: int) -> list[Question]:
    """Make `count` questions of each family, in turns, so that a run that stops early has asked every family."""
    dice = {family: Random(f"{family} {seed}") for family in families}
    return [FAMILIES[family](number, count, dice[family]) for number in range(count) for family in families]


def _word(dice: Random) -> str:
    return "".join(dice.choice("bdfglmnprstvz") + dice.choice("aeiou") for _ in range(4)).capitalize()


def _needle(number: int, count: int, dice: Random) -> Question:
    name, code = _word(dice), str(dice.randint(10_000, 99_999))
    query = f"What is the access code of the vault of {name}?"
    evidence = Planted(f"The access code of the vault of {name} is {code}.\n", (number + 0.5) / count)
    cells = (
        f"at = context.find('vault of {name}')\nprint(context[at - 40 : at + 60])",
        f"import re\nFINAL(re.search(r'vault of {name} is (\\d+)', context[at : at + 60])[1])",
    )
    return Question(f"needle-{number}", "needle", query, code, "number", (evidence,), cells)


def _needles(number: int, count: int, dice: Random) -> Question:
    name, cities = _word(dice), sorted(dice.sample(_CITIES, 4))
    query = f"To which cities did couriers bring parcels on the day of {name}? Give their names, separated by commas."
    evidence = tuple(
        Planted(f"Courier {person} brought a parcel to {city} on the day of {name}.\n", dice.uniform(0.02, 0.98))
        for person, city in zip(dice.sample(_PEOPLE, 4), cities, strict=True)
    )
    cells = (
        f"import re\nfound = re.findall(r'parcel to (\\w+) on the day of {name}', context)\nprint(found)",
        "FINAL(', '.join(found))",
    )
    return Question(f"needles-{number}", "needles", query, ", ".join(cities), "set", evidence, cells)


_COUNT_USERS = """\
from collections import Counter
counts = Counter(re.findall(r'User: (\\d+)', '\\n'.join(rows)))
FINAL(min(counts, key=lambda user: (-counts[user], int(user))))"""


def _counting(number: int, count: int, dice: Random) -> Question:
    """Asks in turn how many rows have a label, and which user has the most rows."""
    name, label = _word(dice).lower(), dice.choice(_LABELS)
    rule: Rule = "number" if number % 2 else "count"
    rows = []
    for _ in range(ROWS):
        day = f"2024-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"
        rows.append((day, dice.randint(100, 120), dice.choice(_LABELS)))
    text = "".join(f"{name} || Date: {day} || User: {user} || Label: {row_label}\n" for day, user, row_label in rows)
    if rule == "number":
        query = f"Of the rows that begin with '{name} ||', which user has the most? Answer with the smallest of equals."
        users = [user for _, user, _ in rows]
        answer = str(min(users, key=lambda user: (-users.count(user), user)))
        last_cell = _COUNT_USERS
    else:
        query = f"Of the rows that begin with '{name} ||', how many have the label {label}? Answer with a number."
        answer = str(sum(row_label == label for *_, row_label in rows))
        last_cell = f"FINAL(sum('Label: {label}' in row for row in rows))"
    cells = f"import re\nrows = re.findall(r'{name} \\|\\| .*', context)\nprint(len(rows), rows[:2])", last_cell
    evidence = Planted(text, (number + 0.4) / count)
    return Question(f"counting-{number}", "counting", query, answer, rule, (evidence,), cells)


def _meaning(number: int, count: int, dice: Random) -> Question:
    name, subject = _word(dice).lower(), dice.choice(list(MEANINGS))
    subjects = [dice.choice(list(MEANINGS)) for _ in range(20)]
    text = "".join(f"{name} >> {dice.choice(MEANINGS[item])}\n" for item in subjects)
    query = (
        f"Of the messages on lines that begin with '{name} >>', how many are about {subject} (of money, delivery and "
        "thanks)? Answer with a number."
    )
    cells = (
        f"import re\nmessages = re.findall(r'{name} >> (.*)', context)\nprint(len(messages), messages[:2])",
        f"said = llm_query_batched([{CLASSIFY!r} + message for message in messages])\nprint(said)\n"
        f"FINAL(sum(subject.strip() == {subject!r} for subject in said))",
    )
    evidence = Planted(text, (number + 0.6) / count)
    return Question(f"meaning-{number}", "meaning", query, str(subjects.count(subject)), "count", (evidence,), cells)


def _two_hop(number: int, count: int, dice: Random) -> Question:
    project, person = _word(dice), f"{_word(dice)} {_word(dice)}"
    room = f"{dice.choice('KLM')}{dice.randint(100, 999)}"
    query = f"In which room does the person work who looks after the papers of project {project}?"
    minutes = f"Minutes of May: the papers of project {project} are in the care of {person}.\n"
    evidence = Planted(minutes, 0.15), Planted(f"House list: {person} is found in room {room} on most days.\n", 0.85)
    pattern = f"papers of project {project} are in the care of (\\w+ \\w+)"
    cells = (
        f"import re\nwho = re.search(r'{pattern}', context)[1]\nprint(who)",
        "FINAL(re.search(who + r' is found in room (\\w+)', context)[1])",
    )
    return Question(f"two-hop-{number}", "two-hop", query, room, "text", evidence, cells)


FAMILIES: dict[str, Callable[[int, int, Random], Question]] = {  # each makes question `number` of `count`
    "needle": _needle,
    "needles": _needles,
    "counting": _counting,
    "meaning": _meaning,
    "two-hop": _two_hop,
}


def make_oracle(questions: Sequence[Question]) -> ScriptedLM:
    """A scripted model that knows the answers to these questions."""
    by_query = {question.query: question for question in questions}

    def reply(messages: Any) -> str:
        if isinstance(messages, str):
            return _answer_prompt(messages, questions)
        turns = conversation(messages)
        query = turns[0]["content"].removeprefix(QUESTION_OPENS)  # ends with a quotation mark and a description
        (question,) = [question for text, question in by_query.items() if query.startswith(f'{text}"')]
        turn = sum(message["role"] == "assistant" for message in turns)
        return f"```repl\n{question.cells[min(turn, len(question.cells) - 1)]}\n```"

    return ScriptedLM(reply, model="oracle")


def _answer_prompt(prompt: str, questions: Sequence[Question]) -> str:
    """The reply to a single prompt: a message to classify, or a text with a question at its end."""
    if prompt.startswith(CLASSIFY):
        message = prompt.removeprefix(CLASSIFY)
        return next((kind for kind, messages in MEANINGS.items() if message in messages), "unknown")
    for question in questions:
        if prompt.endswith(question.query):
            lines = [line for planted in question.evidence for line in planted.text.splitlines()]
            return question.answer if all(line in prompt for line in lines) else "unknown"
    return "unknown"
