"""`rlm` beside another distribution that installs a package of that name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rlm


@pytest.mark.parametrize("name", ["rlms", "recursive-llm"])
def test_importing_beside_another_owner_names_both(tmp_path: Path, name: str) -> None:
    checkout = Path(__file__).parents[2]
    told = tmp_path / f"{name.replace('-', '_')}-9.9.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    code = f"import sys; sys.path[:0] = [{str(checkout)!r}, {str(tmp_path)!r}]; import rlm"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert f"belongs to monocontext-rlm {rlm.__version__} and to {name} 9.9 here" in done.stderr


def test_importing_alone_says_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", "import rlm"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
