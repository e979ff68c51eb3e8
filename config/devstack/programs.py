"""The programs of an instance: what to run, as which user, and how to stop it."""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.parent_process import exit_with_parent

CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "config.celery:app")
# Mingling and gossip between workers are not needed, and cost three seconds at the start.
WORKER = (*CELERY, "worker", "--without-mingle", "--without-gossip", "--loglevel", "WARNING", "-P", "threads")


@dataclass(frozen=True)
class Account:
    """The user a program runs as."""

    uid: int
    gid: int

    @classmethod
    def nobody(cls) -> "Account":
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    def can_run(self, *command: str | Path) -> bool:
        """Whether `command` succeeds for this account."""
        try:
            done = subprocess.run(
                command, check=False, user=self.uid, group=self.gid, extra_groups=[], capture_output=True
            )
        except PermissionError:
            return False
        return done.returncode == 0

    def own(self, folder: Path) -> None:
        """Give a folder and all below it to this account."""
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


@dataclass(frozen=True)
class Program:
    name: str
    command: Sequence[str | Path]
    environ: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    # The kernel sends it when the supervisor ends.
    orphan_signal: signal.Signals = signal.SIGKILL
    stop_seconds: float = 3.0
    # Datastores stop after the programs that use them.
    is_datastore: bool = False
    # Its output is returned and not printed.
    is_captured: bool = False

    def spawn(self) -> "subprocess.Popen[bytes]":
        """Start it in its own session, so that Ctrl-C reaches only the supervisor."""
        parent = os.getpid()
        account = self.account
        return subprocess.Popen(
            self.command,
            env={**os.environ, **self.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            # This process has one thread, so no lock is held in the fork. Runs after the change of user.
            preexec_fn=lambda: exit_with_parent(parent, self.orphan_signal),  # noqa: PLW1509
        )


def manage(name: str, environ: Mapping[str, str], *arguments: str, is_captured: bool = False) -> Program:
    """A management command."""
    return Program(name, [sys.executable, "manage.py", *arguments], environ, is_captured=is_captured)


def web(environ: Mapping[str, str]) -> Program:
    """The web server."""
    return Program("web", [sys.executable, "-m", "config.server"], environ)


def workers(environ: Mapping[str, str]) -> list[Program]:
    """Workers, beat and the sandbox bank. Slow webhooks and banks delay no other tasks."""
    # In a container everything runs as root, so Celery's warning does not help.
    worker_environ = {**environ, "PYTHONWARNINGS": "ignore:::celery.platforms"}
    beat = (*CELERY, "beat", "--loglevel", "WARNING", "--pidfile=")
    return [
        Program("webhooks", [*WORKER, "-Q", "webhooks", "-c", "4", "-n", "webhooks@%h"], worker_environ),
        # One process for three queues: each limits its own runs, so together they need at most 20 threads.
        Program(
            "banks",
            [*WORKER, "-Q", "cards,transfers,inquiries", "-c", "20", "-n", "banks@%h"],
            worker_environ,
        ),
        Program("default", [*WORKER, "-Q", "default", "-c", "4", "-n", "default@%h"], worker_environ),
        Program("beat", beat, environ),
        manage("bank", environ, "sandbox_bank"),
    ]
