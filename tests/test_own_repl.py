"""The three lines of docs/hosts.md for a REPL of one's own."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from monocontext import Monocontext, publish

HOSTS = Path(__file__).parents[1] / "docs" / "hosts.md"
CELLS = [
    "import re\nmatch = re.search(r'needle-(\\d+)', context)",
    "answer = (match.group(1), isinstance(context, str))",
]


def test_cells_search_the_text_with_re(tmp_path: Path) -> None:
    publish("hay\n" * 1000 + "needle-42\n" + "hay\n" * 1000, tmp_path)
    recipe = HOSTS.read_text().split("```python\n")[1].split("```")[0]
    assert len(re.findall(r"\S.*\n", recipe)) == 4, "an import and three lines"
    setup, run = recipe.rsplit("exec(", 1)
    with Monocontext.open(tmp_path, prefetch="off") as context:
        scope = {"context": context, "builtins": builtins}
        exec(setup, scope)
        for scope["code"] in CELLS:
            exec("exec(" + run, scope)
        assert scope["namespace"]["answer"] == ("42", True)  # type: ignore[index]


def test_a_class_of_the_shape_of_rlm_minimal_gets_the_text(tmp_path: Path) -> None:
    class Shape:
        def setup_context(self, context: str, query: str | None = None) -> list[str]:
            names = {"__builtins__": {"__import__": __import__, "isinstance": isinstance}}
            self.repl_env = SimpleNamespace(globals=names, locals={"context": context})
            return [query or ""]

    publish("hay\n" * 1000 + "needle-42\n", tmp_path)
    recipe = HOSTS.read_text().partition("\n### rlm-minimal\n")[2].partition("```python\n")[2].partition("```")[0]
    with Monocontext.open(tmp_path, prefetch="off") as context:
        exec(recipe, names := {"context": context})
        repl = names["lazy"](Shape)()
        assert repl.setup_context(context, "Where?") == ["Where?"]
        scope = repl.repl_env.globals | repl.repl_env.locals
        exec("\n".join(CELLS), scope)
        assert scope["answer"] == ("42", True)


def test_another_package_named_rlm_is_one_plain_line(tmp_path: Path) -> None:
    """As with rlms in the same environment: its `rlm` has no `__version__`, the command is ours."""
    program = "import sys, rlm, rlm.cli; del rlm.__version__; rlm.cli.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rlm: the module `rlm` of this environment is another package's (rlms?)")
    assert done.stderr.count("\n") == 1
