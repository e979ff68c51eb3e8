"""`python -m tests.migrations`: list the migrations that are not listed yet.

A database that has a migration will not run it again, so a change would reach some databases and not others.
One that no database has yet may change: remove its line, and list it again.
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/migrations.sha256"


def found() -> dict[str, str]:
    """The checksums of what is there, by path."""
    paths = sorted(ROOT.glob("*/migrations/0*.py"))
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def listed() -> dict[str, str]:
    lines = LIST.read_text().splitlines()
    return {path: checksum for checksum, path in (line.split() for line in lines)}


def main() -> None:
    known = listed()
    with LIST.open("a") as file:
        file.writelines(f"{checksum}  {path}\n" for path, checksum in found().items() if path not in known)


if __name__ == "__main__":
    main()
