"""`python -m config.server`: the web server. HOST, PORT, WEB_WORKERS and WEB_THREADS choose its shape."""

import gc
import os
import resource
import signal
import sys
import time
from functools import partial
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import SystemCheckError
from django.db import connections
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.server.mp import MPServer

from config import concurrency
from config.asgi import WsgiAdapter, WsgiApplication
from config.parent_process import exit_with_parent

APPLICATION = "config.wsgi:application"
# Open connections of a worker; more wait in the kernel's queue. Stalled ones are closed after 10 s.
CONNECTIONS_PER_WORKER = 2048
HEADER_MILLISECONDS = 10_000
HEADER_BYTES = 64 * 1024
STOP_SECONDS = 5
RESPAWN_SECONDS = 0.2
# With four threads in a worker, Python's 5 ms would delay the event loop.
SWITCH_SECONDS = 0.0005


class WebServer(MPServer):
    """Granian stops when a worker crashes twice within 5.5 s. This server keeps replacing the worker."""

    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any, *rest: Any) -> Any:
        placed = partial(callback_loader, processor_for(idx, self.workers))
        return super()._spawn_worker(idx, target, placed, *rest)

    def _respawn_workers(self, *args: Any, **kwargs: Any) -> None:
        time.sleep(RESPAWN_SECONDS)
        super()._respawn_workers(*args, **kwargs)
        self.respawned_wrks.clear()


class ApplicationLoader:
    """Creates the application in a worker; a forked worker uses what its parent imported."""

    def __init__(self, target: str, threads: int, card_threads: int) -> None:
        self.target = target
        self.threads = threads
        self.card_threads = card_threads
        self.parent = os.getpid()

    def __call__(self, processor: int | None) -> Any:
        """Return the ASGI application, and bind this process to `processor`."""
        if processor is not None:
            os.sched_setaffinity(0, {processor})
        # Workers of a killed parent would keep the port.
        exit_with_parent(self.parent, signal.SIGKILL)
        # Until the event loop runs, the copied handlers of the parent would ignore these signals.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.setswitchinterval(SWITCH_SECONDS)
        application = load(self.target)
        # Loaded modules stay; without this each garbage collection would scan them for 50 ms.
        gc.freeze()
        return WsgiAdapter(application, self.threads, self.card_threads)


def processor_for(worker: int, workers: int) -> int | None:
    """The processor of a worker, which can use one at a time because of the interpreter lock.

    Moving threads between processors costs a fifth of the throughput (cold caches). None leaves it to the
    system: if workers would not be spread evenly, or if the system cannot bind processes.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    processors = sorted(os.sched_getaffinity(0))
    return None if workers % len(processors) else processors[worker % len(processors)]


def load(target: str) -> WsgiApplication:
    """Import `module:attribute`."""
    module, _, attribute = target.partition(":")
    application: WsgiApplication = getattr(import_module(module), attribute)
    return application


def serve(target: str) -> None:
    """Serve until stopped. Imports the application first, because workers are forks."""
    try:
        load(target)
    except SystemCheckError as error:
        sys.exit(str(error))
    if settings.configured:
        # Workers must not share the connection that the checks of the application opened.
        connections.close_all()
    _raise_file_limit()
    server = WebServer(
        target,
        address=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "8000")),
        interface=Interfaces.ASGINL,
        workers=int(os.environ.get("WEB_WORKERS", "2")),
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        websockets=False,
        backlog=2048,
        backpressure=CONNECTIONS_PER_WORKER,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_MILLISECONDS, max_buffer_size=HEADER_BYTES),
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_SECONDS,
    )
    threads = int(os.environ.get("WEB_THREADS", "4"))
    card_threads = settings.CARD_CONCURRENCY * concurrency.THREADS_PER_CALL if settings.configured else 0
    server.serve(target_loader=ApplicationLoader(target, threads, card_threads), wrap_loader=False)


def _raise_file_limit() -> None:
    """Each connection is an open file, and many systems allow 1024 by default."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else APPLICATION)
