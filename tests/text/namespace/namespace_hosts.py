"""A text with something for every kind of code to find, and a host that runs code about it."""

from __future__ import annotations

import builtins
import io
import random
import re
import traceback
from contextlib import redirect_stdout
from dataclasses import dataclass

from monocontext.text.namespace import NamespacePatch


def sample_text() -> str:
    """About 35,000 characters: a transcript, logs, documents with markers, JSON and CSV lines, and other scripts."""
    random.seed(7)
    names = ["Ann", "Bob", "Søren", "Łukasz", "渡辺"]
    words = re.findall(
        r"\S+", "graph node edge disk error failed alpha beta gamma delta naïve straße ΑΣ. 😀 the of a to"
    )
    parts = ["Question: what does the report say?\n\nTranscript:\n"]
    for i in range(250):
        parts.append(f"{random.choice(names)}: {' '.join(random.choices(words, k=random.randint(3, 14)))}.\n")
        if i % 40 == 7:
            parts.append(f"label: value-{i} \nGraph: [({i}, {i + 1}), ({i + 1}, {i + 2})]\n")
    parts.append(
        "=== Document ===\n".join(f"Chapter {i}\n{' '.join(random.choices(words, k=80))}\n\n" for i in range(30))
    )
    for i in range(200):
        level = random.choice(["INFO", "WARN", "ERROR"])
        end = "\r\n" if i % 17 == 3 else "\n"
        parts.append(f"2024-01-{i % 28 + 1:02} host-{i % 9} {level} took {i * 7 % 1000} ms; disk {i % 5}{end}")
    parts.append("Tasks:\n- count the errors\n- name the hosts\n\nThe secret code is 7291-KX.\n")
    parts.append('name,age,city\nAnn,31,Bern\nBob,44,"Oslo, NO"\n')
    parts += [f'{{"id": {i}, "tags": ["a", "é"]}}\n' for i in range(40)]
    return "".join(parts) + "The end.  \n"


@dataclass(frozen=True)
class Ran:
    """What code did, as far as a user can see."""

    stdout: str
    error: str
    """Name of the exception's type; empty for none."""
    message: str = ""
    traceback: str = ""


def run(code: str, context: object = None, **names: object) -> Ran:
    """Run code as a host does that builds its namespace from a kit, and nothing else."""
    kit = NamespacePatch()
    namespace = {"__name__": "cell", "__builtins__": vars(builtins) | kit.names, "context": context} | names
    stdout = io.StringIO()
    with redirect_stdout(stdout):
        try:
            exec(compile(code, "<cell>", "exec", dont_inherit=True), namespace)
        except Exception as error:
            return Ran(stdout.getvalue(), type(error).__name__, str(error), traceback.format_exc())
    return Ran(stdout.getvalue(), "")
