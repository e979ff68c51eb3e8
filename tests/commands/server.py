"""A process that has imported the packages, and forks for each `client.py`: `server.py SOCKET`.

A copy imports the modules of this project itself, after it took the environment of its client: they read the
settings. A copy can be `server.py SOCKET set-up`: it sets Django up with its own settings, and its copies are
`manage.py` at once. With other settings they begin anew.

The process has no connections and no threads. It ends when its standard input closes, which happens when the
tests end in any way, and its copies end with it.
"""

import gc
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

# What commands import most, of that which does not read the settings of Django.
PACKAGES = (
    "asyncio", "celery.app", "celery.app.backends", "celery.schedules", "django.contrib.postgres.fields",
    "django.core.management", "django.db.backends.postgresql.base", "django.db.migrations.autodetector",
    "django.test.signals", "django_stubs_ext", "environ", "kombu.serialization", "markdown_it", "orjson",
    "pgtrigger", "prometheus_client", "psycopg", "rapidfuzz.fuzz", "redis", "requests",
    "rest_framework.serializers", "uvloop", "whitenoise", "xlsxwriter", "yaml", "zxingcpp",
)  # fmt: skip


# What a shell changes for its commands. It sets nothing up.
OF_A_SHELL = {"PATH", "PWD", "OLDPWD", "SHLVL", "_"}
Prepare = Callable[[list[str], dict[str, str]], None]


def serve(path: Path, prepare: Prepare) -> None:
    """Fork for each client. Returns in the copies only, after `prepare(arguments, environ)`."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        link, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return keep(link, prepare)
        link.close()
    for each in path.parent.glob(f"{path.name}*"):  # also those of copies, which were killed
        each.unlink(missing_ok=True)
    os._exit(0)


def keep(link: socket.socket, prepare: Prepare) -> None:
    """Fork the copy, kill it if its client or the tests end, and tell the client how it ended."""
    size, files, _, _ = socket.recv_fds(link, 4, 3)
    arguments, folder, environ = marshal.loads(link.recv(int.from_bytes(size), socket.MSG_WAITALL))
    pid = os.fork()
    if pid == 0:
        link.close()
        take(files, folder)
        return prepare(arguments, environ)
    for file in files:
        os.close(file)
    threading.Thread(target=kill_with_client, args=(link, pid), daemon=True).start()
    # A client may have been killed at any time. Wait for the end of the copy all the same.
    with suppress(OSError):
        link.sendall(pid.to_bytes(4))
    status = os.waitpid(pid, 0)[1]
    with suppress(OSError):
        link.sendall(status.to_bytes(4))
    os._exit(0)


def kill_with_client(link: socket.socket, pid: int) -> None:
    select.select([link, sys.stdin], [], [])
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, signal.SIGKILL)


def take(files: list[int], folder: str) -> None:
    """Take the standard files and the folder that a process is given at its start."""
    os.setsid()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(folder)


def begin(arguments: list[str], environ: dict[str, str]) -> None:
    """Take the arguments and the environment that a process is given at its start."""
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)


def begin_set_up(arguments: list[str], environ: dict[str, str]) -> None:
    """The same if Django is set up for it. Commands of the owner of the tables change the settings."""
    changed = {name for name, _ in environ.items() ^ started.items()}
    if changed - OF_A_SHELL or Path(arguments[0]).name != "manage.py" or OWNER_COMMANDS & {*arguments[1:2]}:
        os.execve(sys.executable, [sys.executable, *arguments], environ)
    begin(arguments, environ)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that were started by nohup ignore it
    started = dict(os.environ)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        os.write(1, b"\n")  # from now on clients wait
        if sys.argv[2:] == ["set-up"]:
            sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
            from config.management import OWNER_COMMANDS
            from tests.commands.project import set_up

            set_up()
            serve(Path(sys.argv[1]), begin_set_up)
        else:
            for name in PACKAGES:
                import_module(name)
            gc.freeze()  # the copies share this memory
            serve(Path(sys.argv[1]), begin)
    runpy.run_path(sys.argv[0], run_name="__main__")
