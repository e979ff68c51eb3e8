"""The lock files are in step with pyproject.toml, and production installs no server of ours."""

import re
import tomllib
from itertools import chain
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+))?", re.M
)


def pinned(lock: str) -> dict[str, str]:
    """Versions by name."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return {
        canonicalize_name(found["name"]): found["version"]
        for found in PINNED.finditer(text)
        if found["marker"] is None or Marker(found["marker"].strip()).evaluate()
    }


def test_production_lock_has_every_dependency_in_a_version_that_pyproject_allows() -> None:
    locked = pinned("production")
    extras = PROJECT["project"]["optional-dependencies"].values()
    for text in chain(PROJECT["project"]["dependencies"], *extras):
        wanted = Requirement(text)
        assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), text


def test_each_package_is_in_one_lock_file_and_no_embedded_server_in_that_of_production() -> None:
    locked, run, dev = pinned("production"), pinned("run"), pinned("dev")
    servers = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependency-groups"]["run"]}
    assert len(locked) > len(PROJECT["project"]["dependencies"])
    assert servers <= run.keys()
    assert not locked.keys() & run.keys()
    assert not (locked.keys() | run.keys()) & dev.keys()


def test_lock_files_have_a_hash_for_every_package() -> None:
    for lock in ("production", "run", "dev", "build", "uv"):
        text = (ROOT / "requirements" / f"{lock}.lock").read_text()
        blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.M)[1:]
        assert blocks
        assert all("--hash=sha256:" in block for block in blocks), lock
