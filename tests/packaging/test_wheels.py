"""Two distributions out of one checkout: what is in each, what they do in an empty environment, and beside `rlms`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import monocontext

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
RLMS = "rlms==0.1.3"
"""PyPI's reference library; its import name is `rlm`, as is ours."""


def start(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command that sees neither the checkout nor the tests' own paths."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, cwd="/", env=environment)


def run(*command: str | Path) -> str:
    done = start(*command)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with both sdists, and the wheels made of them; from a copy, since a build leaves folders behind."""
    folder = tmp_path_factory.mktemp("built")
    copy = folder / "checkout"
    left = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    copy.mkdir()
    for item in CHECKOUT.iterdir():
        # All that a checkout holds, tests too: what must not go into a wheel is there to be left out.
        if item.name in left(str(CHECKOUT), [item.name]):
            continue
        if item.is_dir():
            shutil.copytree(item, copy / item.name, ignore=left)
        else:
            shutil.copy(item, copy / item.name)
    for project in (copy, copy / "rlm"):
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", project)
    yield folder / "dist"
    shutil.rmtree(copy)


@pytest.fixture(scope="module")
def wheels(built: Path) -> dict[str, Path]:
    """Both wheels, by the name of their distribution."""
    result = {path.name.split("-")[0]: path for path in built.glob("*.whl")}
    assert sorted(result) == ["monocontext", "monocontext_rlm"]
    return result


def sources(folder: Path) -> set[str]:
    """The package's files in the checkout: its code, and what its page is made of."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if (
            path.suffix in {".py", ".html", ".css", ".js", ".mjs"}
            or path.name in ("methods.pyi", "py.typed", "skill.md")
        )
        and folder / "build" not in path.parents  # what an installation has left
    }


@pytest.mark.parametrize(("distribution", "package"), [("monocontext", "monocontext"), ("monocontext_rlm", "rlm")])
def test_holds_its_package_and_nothing_else(wheels: dict[str, Path], distribution: str, package: str) -> None:
    with zipfile.ZipFile(wheels[distribution]) as archive:
        names = archive.namelist()
    own = {name.removeprefix(f"{package}/") for name in names if name.startswith(f"{package}/")}
    rest = {name.split("/")[0] for name in names if not name.startswith(f"{package}/")}
    assert own == sources(CHECKOUT / package)
    assert len(rest) == 1
    assert rest.pop().startswith(f"{distribution}-")
    assert not [name for name in names if "test_" in name or "benchmark" in name]


@pytest.mark.parametrize(("distribution", "package"), [("monocontext", "monocontext"), ("monocontext_rlm", ".")])
def test_an_sdist_holds_what_its_wheel_is_made_of(built: Path, distribution: str, package: str) -> None:
    (sdist,) = built.glob(f"{distribution}-{monocontext.__version__}.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "PKG-INFO", "pyproject.toml"} <= names
    folder = CHECKOUT / ("rlm" if package == "." else package)
    assert {(Path(package) / name).as_posix() for name in sources(folder)} <= names


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A fresh virtual environment; gives its interpreter."""
    run(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    return tmp_path / "venv" / "bin" / "python"


def pip(python: Path, verb: str, *what: str | Path) -> list[str | Path]:
    return [UV, "pip", verb, "--quiet", "--python", python, *what]


def install(python: Path, *what: str | Path) -> None:
    run(*pip(python, "install", "--no-deps", *what))


def fetch(python: Path, *what: str | Path) -> None:
    """Install something that PyPI has, or that needs something of it."""
    done = start(*pip(python, "install", *what))
    if done.returncode != 0:
        pytest.skip(f"uv cannot fetch {what}: {done.stderr.strip().splitlines()[-1]}")


def rlm_files(python: Path) -> dict[str, bytes]:
    """Every file of the package `rlm` that this environment would import; nothing of it is run."""
    find = "import importlib.util as u; print(u.find_spec('rlm').origin)"
    folder = Path(run(python, "-c", find).strip()).parent
    return {str(path): path.read_bytes() for path in folder.rglob("*.py")}


def owner(python: Path) -> str:
    """The distributions that own the import name `rlm`."""
    return run(python, "-c", "import importlib.metadata as m; print(*m.packages_distributions()['rlm'])").strip()


@pytest.mark.parametrize("rlms_first", [True, False])
def test_beside_rlms(wheels: dict[str, Path], environment: Path, rlms_first: bool) -> None:
    """`import rlm` is theirs whichever comes first, and after ours has gone."""
    if not rlms_first:
        install(environment, wheels["monocontext"])
    fetch(environment, "--no-deps", RLMS)
    theirs = rlm_files(environment)
    if rlms_first:
        install(environment, wheels["monocontext"])
    assert theirs
    assert rlm_files(environment) == theirs
    assert owner(environment) == "rlms"
    told = run(environment, "-c", "import monocontext; print(monocontext.__version__)").strip()
    assert told == monocontext.__version__
    run(*pip(environment, "uninstall", "monocontext"))
    assert rlm_files(environment) == theirs
    assert owner(environment) == "rlms"


PUBLISH_AND_READ = """
import importlib.metadata, pathlib, sys, monocontext, rlm
for package in (monocontext, rlm):
    folder = pathlib.Path(package.__file__).parent
    assert (folder / "py.typed").exists() and folder.is_relative_to(sys.prefix), folder
text = "".join(f"line {n}\\n" for n in range(10_000))
monocontext.publish(text, sys.argv[1])
with monocontext.Monocontext.open(sys.argv[1]) as context:
    assert str(context) == text and context[-5:] == "9999\\n" and context.find("line 777") == text.find("line 777")
print(importlib.metadata.version("monocontext-rlm"))
"""


def test_in_an_empty_environment(wheels: dict[str, Path], environment: Path, tmp_path: Path) -> None:
    """With the dependencies that a user gets today, and nothing else."""
    fetch(environment, *wheels.values())
    run(*pip(environment, "check"))
    for name in ("monocontext", "rlm"):
        assert run(environment.parent / name, "--version") == f"{name} {monocontext.__version__}\n"
        assert f"Usage: {name} [OPTIONS] COMMAND [ARGS]..." in run(environment.parent / name, "--help")
    place = tmp_path / "context"
    assert run(environment, "-c", PUBLISH_AND_READ, place).strip() == monocontext.__version__
    assert run(environment.parent / "monocontext", "cat", place, "--lines", "10000:") == "line 9999\n"
    assert run(environment.parent / "monocontext", "grep", "line 777$", place) == "line 777\n"


def test_twine_finds_nothing(built: Path, environment: Path) -> None:
    """What an index refuses, and a README that it does not render."""
    fetch(environment, "twine")
    checked = sorted(built.iterdir())
    assert len(checked) == 4
    assert run(environment, "-m", "twine", "check", "--strict", *checked).count("PASSED") == 4
