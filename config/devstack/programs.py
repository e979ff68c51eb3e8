"""What to run, as whom, and how it ends."""

import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.parent_process import exit_with_parent


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
    # What the kernel sends when the supervisor itself is gone.
    orphan_signal: signal.Signals = signal.SIGKILL
    stop_seconds: float = 3.0
    # Servers stop after those who use them.
    is_datastore: bool = False
    # Its output is an answer for us, not for the log.
    is_captured: bool = False

    def spawn(self) -> "subprocess.Popen[bytes]":
        """Start it in a session of its own: the terminal's Ctrl-C is ours to pass on, in order."""
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
            # We have one thread, so nothing can be locked in the copy. Runs after the change of user.
            preexec_fn=lambda: exit_with_parent(parent, self.orphan_signal),  # noqa: PLW1509
        )
