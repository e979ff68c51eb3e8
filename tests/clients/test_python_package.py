"""The package that users install holds all modules and the types."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.stack import ROOT


@pytest.mark.slow
def test_wheel_has_all_modules_and_types(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "clients" / "python", check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("thaiqr-*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    source = ROOT / "clients" / "python" / "src"
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert modules | {"thaiqr/py.typed"} <= names
    assert "Requires-Dist: httpx" in metadata
