"""Print the picture of the house: the layers of the import contracts, what each is for, and the lines that it may have.

    python docs/house.py            # print it
    python docs/house.py --write    # put it between the marks in docs/design.md
    python docs/house.py --weigh    # the lines that each room has and may have; exits with 1 if one has more

Contracts and budgets (`[tool.house.budget]`: room = [lines of product, lines of tests]) are in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PAGES = ("docs/design.md",)
BEGIN, END = "<!-- house: printed by docs/house.py -->", "<!-- /house -->"


CONFIG = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]
BUDGET: dict[str, list[int]] = CONFIG["house"]["budget"]


def layers(container: str) -> list[list[str]]:
    """The layers of a package, top first, as the contract names them."""
    for contract in CONFIG["importlinter"]["contracts"]:
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


def lines_of(*paths: str) -> int:
    """The lines of Python under files and folders, without what git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *paths]
    names = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.split("\0")
    files = [TOP / name for name in names if name.endswith(".py")]
    return sum(len(file.read_bytes().splitlines()) for file in files if file.exists())


def weight(room: str) -> list[int]:
    """The lines of a room, and of its tests, which are in the folder of its name. "all" is the whole house."""
    if room == "all":
        return [lines_of("monocontext", "rlm"), lines_of("tests")]
    return [lines_of(room), lines_of("tests/" + room.removeprefix("monocontext/"))]


def weigh() -> tuple[list[str], list[str]]:
    """A line for each room with what it has and may have, and a line for each that has more than it may."""
    rows, excess = [], []
    for room, limits in BUDGET.items():
        lines = weight(room)
        pairs = list(zip(("product", "tests"), lines, limits, strict=True))
        rows.append(f"{room:<24}" + "".join(f"  {kind} {have:>6,} of {limit:>6,}" for kind, have, limit in pairs))
        excess += [
            f"{room}: {have:,} lines of {kind}, and the budget in pyproject.toml allows {limit:,}"
            for kind, have, limit in pairs
            if have > limit
        ]
    return rows, excess


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
                limits = BUDGET.get(f"{container}/{name}")
                allowed = f" ({limits[0]:,} + {limits[1]:,})" if limits else ""
                lines.append(f"{mark}{shown:<16} {purpose(container, name)}{allowed}")
    return "\n".join(lines)


def page_with(picture: str, page: str) -> str:
    """The text of a page with this picture between the marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n```text\n{picture}\n```\n{END}{after}"


def main() -> None:
    if "--weigh" in sys.argv:
        rows, excess = weigh()
        print("\n".join(rows))
        sys.exit("\n".join(excess) or 0)
    drawn = picture()
    print(drawn)
    if "--write" in sys.argv:
        for name in PAGES:
            path = TOP / name
            path.write_text(page_with(drawn, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
