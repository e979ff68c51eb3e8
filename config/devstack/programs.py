"""The programs of an instance: what to run, as which user, and how to stop it."""

import gc
import os
import pwd
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from django.core.management import call_command

from config import command_line
from config.devstack.forked_process import ForkedProcess
from config.env import OWNER_URL, database_url
from config.parent_process import exit_with_parent
from config.workers import WORKERS
from core import request_context


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
        try:
            done = subprocess.run(
                command, check=False, user=self.uid, group=self.gid, extra_groups=[], capture_output=True
            )
        except PermissionError:
            return False
        return done.returncode == 0

    def own(self, folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


@dataclass(frozen=True)
class Program:
    """A command, or a `target` that runs in a copy of this process with the application imported."""

    name: str
    command: Sequence[str | Path] = ()
    target: Callable[[], object] | None = None
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    # The kernel sends it when the supervisor ends.
    orphan_signal: signal.Signals = signal.SIGKILL
    stop_seconds: float = 3.0
    # Datastores stop after the programs that use them.
    is_datastore: bool = False
    # Its output is not printed.
    is_silent: bool = False

    def spawn(self) -> "subprocess.Popen[bytes] | ForkedProcess":
        """Start it in its own session, so that Ctrl-C reaches only the supervisor."""
        if self.target is not None:
            return ForkedProcess(self.target, self.orphan_signal)
        parent = os.getpid()
        account = self.account
        return subprocess.Popen(
            self.command,
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


# What the programs would import after the fork.
PRELOADED = (
    "config.server", "config.urls", "config.celery", "gunicorn.workers.gasgi", "kombu.transport.redis",
    "celery.bin.celery", "celery.bin.worker", "celery.bin.beat", "celery.apps.worker", "celery.apps.beat",
    "celery.concurrency.thread", "celery.worker.consumer", "celery.worker.strategy",
    "celery.worker.components", "sandbox.management.commands.sandbox_bank",
    "django.core.management.commands.migrate",
)  # fmt: skip


def import_application(environ: Mapping[str, str]) -> None:
    """Import everything once, for all programs with a target."""
    os.environ.update(environ)
    import django

    django.setup()
    for name in PRELOADED:
        import_module(name)
    import_module("config.celery").app.loader.import_default_modules()
    # In a container everything runs as root, so Celery's warning does not help.
    warnings.filterwarnings("ignore", module="celery.platforms")
    # The garbage collector of a child would otherwise copy the memory that they share.
    gc.freeze()


# Of a database in the settings.
ADDRESS_FIELDS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


def migrate() -> None:
    """Bring the tables up to date as their owner, which web and workers are not."""
    from django.db import connection

    owner = database_url(OWNER_URL, {})
    connection.settings_dict.update({name: owner[name] for name in ADDRESS_FIELDS if name in owner})
    call_command("migrate", "--no-input", "--skip-checks", "-v0")


def seed(password: str, output: Path) -> None:
    """Make the demo merchant, and a user of the console with this password. The file gets their secrets."""
    os.environ.update(ADMIN_PASSWORD=password)
    request_context.begin(actor="command:seed_demo")
    with output.open("w") as file:
        call_command("seed_demo", stdout=file)


def services(are_separate: bool) -> list[Program]:
    """Web, workers, beat and the sandbox bank. SEPARATE_WORKERS=1 runs each worker by itself."""
    # It stops within both times of `config.server`.
    web = Program("web", target=partial(command_line.main, ["web"]), stop_seconds=8.0)
    bank = Program("bank", target=partial(call_command, "sandbox_bank"))
    if not are_separate:
        return [web, Program("worker", target=_worker_with_beat), bank]
    separate = [
        Program(name, target=partial(command_line.main, ["worker", "--queues", name, "--name", name]))
        for name in WORKERS
    ]
    return [web, *separate, Program("beat", target=partial(command_line.main, ["beat"])), bank]


def _worker_with_beat() -> None:
    """Run a worker, and beat in a thread of it. Celery's option `-B` would start another process."""
    from celery.signals import worker_ready

    @worker_ready.connect(weak=False)
    def start_beat(**_: object) -> None:
        threading.Thread(target=_beat, name="beat", daemon=True).start()

    command_line.main(["worker"])


def _beat() -> None:
    """Run beat. If it ends, the worker ends too, and the supervisor replaces both."""
    service = import_module("celery.beat").Service
    app = import_module("config.celery").app
    try:
        service(app, scheduler_cls=app.conf.beat_scheduler, remote_control=False).start()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
