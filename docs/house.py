"""Print the picture of the house: the layers of the import contracts, each with what its docstring says it does.

    python docs/house.py            # print it
    python docs/house.py --write    # put it between the marks in docs/design.md

The contracts are in pyproject.toml; a test compares the page with them.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PAGES = ("docs/design.md",)
BEGIN, END = "<!-- house: printed by docs/house.py -->", "<!-- /house -->"


def layers(container: str) -> list[list[str]]:
    """The layers of a package, top first, as the contract names them."""
    config = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))
    for contract in config["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and contract["containers"] == [container]:
            return [[name.strip() for name in layer.split(":")] for layer in contract["layers"]]
    raise LookupError(f"no contract of layers for {container}")


def purpose(container: str, name: str) -> str:
    """The first clause of a module's docstring, up to the first comma after three words."""
    folder = TOP.joinpath(*container.split("."))
    path = folder / name / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else folder / f"{name}.py").read_text("utf-8"))) or ""
    clause = re.split(r"[.:;] ", " ".join(text.split("\n\n")[0].split()))[0].rstrip(".:")
    first = clause.split(", ")[0]
    return first if len(first.split()) > 3 else clause


def picture() -> str:
    """Both packages, a layer a paragraph."""
    lines = []
    for container in ("monocontext", "rlm"):
        lines.append(f"{container}/")
        for layer in layers(container):
            for number, name in enumerate(layer):
                folder = TOP / container / name
                shown = f"{name}/" if folder.is_dir() else f"{name}.py"
                mark = "  " if number == 0 else ": "
                lines.append(f"{mark}{shown:<15}{purpose(container, name)}")
    return "\n".join(lines)


def page_with(picture: str, page: str) -> str:
    """The text of a page with this picture between the marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n```text\n{picture}\n```\n{END}{after}"


def main() -> None:
    drawn = picture()
    print(drawn)
    if "--write" in sys.argv:
        for name in PAGES:
            path = TOP / name
            path.write_text(page_with(drawn, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
