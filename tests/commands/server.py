"""A process that has imported the packages, and forks for each `client.py`: `server.py SOCKET DESCRIPTOR`.

A copy imports the modules of this project itself, after it took the environment of its client: they read the
settings. The process has no connections and no threads. It ends when its standard input closes, which happens
when the tests end in any way, and its copies end with it.
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
from contextlib import suppress
from importlib import import_module
from pathlib import Path

# What commands import most, of that which does not read the settings of Django.
PACKAGES = (
    "asyncio", "celery.app", "celery.app.backends", "celery.schedules", "django.contrib.postgres.fields",
    "django.core.management", "django.db.backends.postgresql.base", "django.db.migrations.autodetector",
    "django.test.signals", "django_stubs_ext", "environ", "kombu.serialization", "markdown_it", "orjson",
    "pgtrigger", "prometheus_client", "psycopg", "rapidfuzz.fuzz", "redis", "requests",
    "rest_framework.serializers", "uvloop", "webauthn", "whitenoise", "xlsxwriter", "yaml", "zxingcpp",
)  # fmt: skip


def serve(path: Path, listener: socket.socket) -> None:
    """Fork for each client. Returns in the copies only."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        link, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return keep(link)
        link.close()
    path.unlink()
    os._exit(0)


def keep(link: socket.socket) -> None:
    """Fork the copy, kill it if its client or the tests end, and tell the client how it ended."""
    size, files, _, _ = socket.recv_fds(link, 4, 3)
    arguments, folder, environ = marshal.loads(link.recv(int.from_bytes(size), socket.MSG_WAITALL))
    pid = os.fork()
    if pid == 0:
        link.close()
        return become(arguments, folder, environ, files)
    for file in files:
        os.close(file)
    threading.Thread(target=kill_with_client, args=(link, pid), daemon=True).start()
    with suppress(OSError):  # the client was killed
        link.sendall(pid.to_bytes(4))
        link.sendall(os.waitpid(pid, 0)[1].to_bytes(4))
    os._exit(0)


def kill_with_client(link: socket.socket, pid: int) -> None:
    select.select([link, sys.stdin], [], [])
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, signal.SIGKILL)


def become(arguments: list[str], folder: str, environ: dict[str, str], files: list[int]) -> None:
    """Take what a process is given at its start."""
    os.setsid()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that were started by nohup ignore it
    with socket.socket(fileno=int(sys.argv[2])) as waiting:
        for name in PACKAGES:
            import_module(name)
        gc.freeze()  # the copies share this memory
        serve(Path(sys.argv[1]), waiting)
    runpy.run_path(sys.argv[0], run_name="__main__")
