"""Two distributions out of one checkout: what is in each wheel, and that PyPI's `rlms` stays whole beside ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).parents[2]
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Both wheels, by the name of their distribution; built from a copy, since a build leaves folders behind."""
    folder = tmp_path_factory.mktemp("wheels")
    copy = folder / "checkout"
    left = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    copy.mkdir()
    for each in CHECKOUT.iterdir():
        # All that a checkout holds, tests too: what must not go into a wheel is there to be left out.
        if each.name in left(str(CHECKOUT), [each.name]):
            continue
        if each.is_dir():
            shutil.copytree(each, copy / each.name, ignore=left)
        else:
            shutil.copy(each, copy / each.name)
    for project in (copy, copy / "rlm"):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "dist", project)
    found = {path.name.split("-")[0]: path for path in (folder / "dist").iterdir()}
    assert sorted(found) == ["monocontext", "monocontext_rlm"]
    yield found
    shutil.rmtree(copy)


def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def sources(folder: Path) -> set[str]:
    """The package's files in the checkout: its code, and what its page is made of."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix in {".py", ".html", ".css", ".js"} or path.name == "py.typed"
    }


@pytest.mark.parametrize(("distribution", "package"), [("monocontext", "monocontext"), ("monocontext_rlm", "rlm")])
def test_holds_its_package_and_nothing_else(wheels: dict[str, Path], distribution: str, package: str) -> None:
    names = contents(wheels[distribution])
    own = {name.removeprefix(f"{package}/") for name in names if name.startswith(f"{package}/")}
    rest = {name.split("/")[0] for name in names if not name.startswith(f"{package}/")}
    assert own == sources(CHECKOUT / package)
    assert len(rest) == 1
    assert rest.pop().startswith(f"{distribution}-")
    assert not [name for name in names if "test_" in name or "benchmark" in name]


def test_describe_themselves(wheels: dict[str, Path]) -> None:
    for distribution, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
            metadata = archive.read(f"{info}/METADATA").decode()
            entries = archive.read(f"{info}/entry_points.txt").decode()
            licenses = [name for name in archive.namelist() if name.startswith(f"{info}/licenses/")]
        assert "License-Expression: MIT" in metadata
        assert "Requires-Python: >=3.11" in metadata
        assert licenses
        if distribution == "monocontext":
            assert "monocontext = monocontext.cli:main" in entries
        else:
            assert "rlm = rlm.cli:main" in entries
            assert "Requires-Dist: monocontext" in metadata


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A fresh virtual environment; gives its interpreter."""
    venv.create(tmp_path / "venv", with_pip=True)
    return tmp_path / "venv" / "bin" / "python"


def install(python: Path, *what: str | Path) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", *what)


def install_rlms(python: Path) -> None:
    done = start(python, "-m", "pip", "install", "--quiet", "--no-deps", "--retries", "1", RLMS)
    if done.returncode != 0:
        pytest.skip(f"pip cannot fetch {RLMS}: {done.stderr.strip().splitlines()[-1]}")


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
    install_rlms(environment)
    theirs = rlm_files(environment)
    if rlms_first:
        install(environment, wheels["monocontext"])
    assert theirs
    assert rlm_files(environment) == theirs
    assert owner(environment) == "rlms"
    assert run(environment, "-c", "import monocontext; print(monocontext.__version__)").strip()
    run(environment, "-m", "pip", "uninstall", "--quiet", "--yes", "monocontext")
    assert rlm_files(environment) == theirs
    assert owner(environment) == "rlms"


def test_the_package_rlm_is_a_distribution_of_its_own(wheels: dict[str, Path], environment: Path) -> None:
    install(environment, wheels["monocontext"], wheels["monocontext_rlm"])
    assert owner(environment) == "monocontext-rlm"
    run(environment, "-m", "pip", "uninstall", "--quiet", "--yes", "monocontext-rlm")
    assert run(environment, "-c", "import importlib.util as u; print(u.find_spec('rlm'))").strip() == "None"
    assert run(environment, "-c", "import monocontext").strip() == ""
