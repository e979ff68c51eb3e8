"""The package that users install holds all modules, the types and the command line."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.stack import ROOT

pytestmark = pytest.mark.slow


def test_wheel_has_all_modules_and_types(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "clients" / "python", check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("thai_qr_payments_client-*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata, scripts = (
            wheel.read(next(name for name in names if name.endswith(end))).decode()
            for end in ("METADATA", "entry_points.txt")
        )
    source = ROOT / "clients" / "python" / "src"
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert modules | {"thaiqr/py.typed"} <= names
    assert re.findall(r"Requires-Dist: (\w+)(?!.*extra)", metadata) == ["httpx"]
    assert "thaiqr = thaiqr.__main__:main" in scripts


def test_command_line_without_its_packages_says_how_to_install_them() -> None:
    program = "import sys; sys.modules['typer'] = None; from thaiqr.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "The command line needs more packages: pip install 'thai-qr-payments-client[cli]'\n",
    )
