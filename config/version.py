"""The version of this release, from `pyproject.toml`, which the wheel contains too."""

import tomllib
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
