"""`make run` interrupted by Ctrl-C at ten moments of its first start: the next run repairs what was left."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.stack import ROOT, wait_until

pytestmark = pytest.mark.slow
UV = ROOT / ".venv/uv/bin/uv"
SITE = "lib/python3*/site-packages"
# What has just appeared in `.venv`. Making the environment, the installer, and the packages.
MOMENTS = [
    "pyvenv.cfg", "bin/python", f"{SITE}/pip", f"{SITE}/pip/_vendor", f"{SITE}/pip-*.dist-info",
    ".python", "uv.new", "uv", ".half", f"{SITE}/sample",
]  # fmt: skip
MODULES = 500
SECONDS = 120
# Make's line about a step, whose shell ends with 130 after an interruption. Python ends with 1 if it is
# interrupted while it starts, and says why.
INTERRUPTED = re.compile("KeyboardInterrupt|Operation cancelled by user")  # Python, pip
FAILED = re.compile(r"Error (?!130)\d")
IMPORTS = "".join(f"import sample.part_{number}\n" for number in range(MODULES))
PROGRAM = f"{IMPORTS}print('is running')\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the Makefile, an installer and a package that need no network, and a short program."""
    if not UV.exists():
        pytest.skip("`make setup` did not make this environment")
    folder, wheels = tmp_path / "clone", tmp_path / "wheels"
    (folder / "requirements").mkdir(parents=True)
    (folder / "config/devstack").mkdir(parents=True)
    wheels.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "config/devstack/__main__.py").write_text(PROGRAM)
    script = {"uv-1.0.data/scripts/uv": f'#!/bin/sh\nexec "{UV}" "$@"\n'}
    parts = {f"sample/part_{number}.py": "" for number in range(MODULES)}
    for lock, name, files in [
        ("uv", "uv", script),
        ("production", "library", {"library.py": ""}),
        ("run", "sample", {"sample/__init__.py": "", **parts}),
    ]:
        digest = write_wheel(wheels, name, files)
        (folder / f"requirements/{lock}.lock").write_text(f"{name}==1.0 --hash=sha256:{digest}\n")
    return folder


def write_wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """Write version 1.0 of a package; return the SHA-256 of its wheel."""
    about = f"{name}-1.0.dist-info"
    described = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = "".join(f"{path},,\n" for path in (*files, *described, f"{about}/RECORD"))
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, **described, f"{about}/RECORD": listed}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@contextmanager
def make_run(clone: Path) -> Iterator["subprocess.Popen[str]"]:
    """`make run`, which does not outlive the block."""
    wheels = str(clone.parent / "wheels")
    environ = {
        "PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels, "UV_OFFLINE": "1",
        "UV_FIND_LINKS": wheels, "UV_CACHE_DIR": str(clone.parent / "cache"),
    }  # fmt: skip
    with subprocess.Popen(
        ["make", "run"],
        cwd=clone,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_run_after_an_interruption_repairs_the_environment(clone: Path) -> None:
    for moment in MOMENTS:
        interrupt(clone, moment)
    with make_run(clone) as process:
        printed, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, printed.splitlines()[-1]) == (0, "is running"), printed


def interrupt(clone: Path, moment: str) -> None:
    """Start, and press Ctrl-C when a file appears that was not there at the start."""
    started = time.time()
    with make_run(clone) as process:
        wait_until(lambda: is_new(clone / ".venv", moment, started) or process.poll() is not None, SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate(timeout=SECONDS)
    # It was interrupted, or it was quicker. No step failed by itself.
    assert process.returncode in {0, -signal.SIGINT, 2}, printed
    assert INTERRUPTED.search(printed) or not FAILED.search(printed), (moment, printed)


def is_new(environment: Path, pattern: str, started: float) -> bool:
    with suppress(FileNotFoundError):
        return any(path.lstat().st_ctime > started for path in environment.glob(pattern))
    return False
