"""The service as an operator installs it: the wheel and its locked packages in an environment of its own."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import requests

from config.devstack import ports
from core import vault
from tests.commands import warm
from tests.stack import ROOT, STOP_SECONDS, wait_until

UV = Path(sys.prefix) / "uv" / "bin" / "uv"
START_SECONDS = 180.0


def build(folder: Path, changes: Mapping[str, tuple[str, str]] | None = None) -> None:
    """Build wheel and sdist from the tracked files, with changes that are not committed yet.

    `changes` are of the test: the path of a file, a text in it, and what stands there instead.
    """
    revision = (
        _git("-c", "user.name=tests", "-c", "user.email=tests@example.test", "stash", "create") or "HEAD"
    )
    if changes:
        revision = _changed_tree(revision, changes, folder / "index")
    make = ["make", "package", f"REVISION={revision}", f"DIST={folder}"]
    subprocess.run(make, cwd=ROOT, capture_output=True, check=True)


def _changed_tree(revision: str, changes: Mapping[str, tuple[str, str]], index: Path) -> str:
    """A tree of files that differs from a revision; the checkout stays as it is."""
    environ = {"GIT_INDEX_FILE": str(index)}
    _git("read-tree", revision, **environ)
    for path, (old, new) in changes.items():
        text = _git("show", f"{revision}:{path}") + "\n"
        assert old in text, (path, old)
        blob = _git("hash-object", "-w", "--stdin", given=text.replace(old, new))
        mode = _git("ls-files", "--format=%(objectmode)", path, **environ)
        _git("update-index", "--cacheinfo", f"{mode},{blob},{path}", **environ)
    tree = _git("write-tree", **environ)
    index.unlink()
    return tree


def _git(*arguments: str, given: str = "", **environ: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        env=os.environ | environ,
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def install(wheel: Path, environment: Path) -> None:
    """Install the wheel and exactly the packages of the lock file."""
    lock = ROOT / "requirements" / "production.lock"
    install = ["pip", "install", "--quiet", "--python", str(environment / "bin" / "python")]
    for arguments in (
        ["venv", "--quiet", "--python", sys.executable, str(environment)],
        [*install, "--require-hashes", "-r", str(lock)],
        [*install, "--no-deps", str(wheel)],
    ):
        subprocess.run([UV, *arguments], check=True)


def new_database() -> str:
    """Create an empty database, whose commits wait for the disk; return its URL."""
    name = f"installed_{secrets.token_hex(6)}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    return os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + name


@dataclass
class Installation:
    """A deployment: programs in `environment`, run from the empty folder `home`."""

    environment: Path
    home: Path
    port: int = field(default_factory=ports.pick)
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)
        if "DATABASE_URL" not in self.settings:
            self.settings["DATABASE_URL"] = new_database()
        self.settings = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "REDIS_URL": os.environ["REDIS_URL"],
            "BASE_URL": self.base_url,
            "PORT": str(self.port),
            "ALLOWED_HOSTS": "127.0.0.1",
            "PROXY_HOPS": "1",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "IDEMPOTENCY_KEYS": secrets.token_urlsafe(50),
            "FIELD_ENCRYPTION_KEYS": vault.new_key(),
            "SANDBOX_BANK_SECRET": secrets.token_urlsafe(32),
        } | self.settings

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def program(self) -> Path:
        return self.environment / "bin" / "thaiqr-server"

    def run(
        self, *arguments: str, is_checked: bool = True, **settings: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run `thaiqr-server` to its end."""
        return subprocess.run(
            [*warm(self.environment / "bin" / "python"), self.program, *arguments],
            cwd=self.home,
            env=self.settings | settings,
            capture_output=True,
            text=True,
            check=is_checked,
        )

    @contextmanager
    def running(self, *arguments: str, **settings: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run `thaiqr-server` during the block. It must end by itself after SIGTERM."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [self.program, *arguments],
                cwd=self.home,
                env=self.settings | settings,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()

    @property
    def log(self) -> Path:
        return self.home.with_name(f"{self.home.name}.log")

    def wait_for(self, path: str) -> None:
        """Wait until the path answers 200."""
        try:
            wait_until(lambda: self._answers(path), START_SECONDS)
        except TimeoutError:
            raise AssertionError(self.log.read_text()) from None

    def _answers(self, path: str) -> bool:
        try:
            return requests.get(f"{self.base_url}{path}", timeout=30).status_code == 200
        except requests.RequestException:
            return False
