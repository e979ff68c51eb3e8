"""`python -m config.server`: the web server. HOST, PORT, WEB_WORKERS and WEB_THREADS choose its shape."""

import gc
import resource
import signal
import sys
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connections
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.util import import_app
from gunicorn.workers.base import Worker

from config import concurrency
from config.asgi import MAX_HEADERS, AsgiApplication, Handle
from config.connection_guard import MAX_LINE
from config.fair_listener import connection_counts, fair_server
from config.parent_process import exit_with_parent

# The values themselves: an application without Django has no `django.conf.settings`.
from config.settings import HOST, PORT, WEB_THREADS, WEB_WORKERS

APPLICATION = "config.application:application"
# How long a worker that stops waits for its connections, and how much longer its parent waits for the worker.
STOP_SECONDS, EXIT_SECONDS = 5, 2
# How long a connection waits for the next whole head. Many clients poll every five seconds.
KEEP_ALIVE_SECONDS = 6
# The event loop of a worker tells its parent that it runs. A worker that is silent for so long is replaced.
SILENT_SECONDS = 60


class JsonLogger(Logger):  # type: ignore[misc]  # it has no types
    """Gunicorn's messages as lines of our log."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class WebServer(BaseApplication):  # type: ignore[misc]  # it has no types
    """Gunicorn keeps the workers, each of which is a process with one event loop, and speaks HTTP in them."""

    def __init__(self, target: str) -> None:
        self.target = target
        super().__init__()

    def load_config(self) -> None:
        options = {
            "bind": f"[{HOST}]:{PORT}" if ":" in HOST else f"{HOST}:{PORT}",
            "workers": WEB_WORKERS,
            "worker_class": "asgi",
            "asgi_lifespan": "off",
            "http_parser": "python",
            "limit_request_line": MAX_LINE,
            "limit_request_fields": MAX_HEADERS,
            "limit_request_field_size": MAX_LINE,
            "keepalive": KEEP_ALIVE_SECONDS,
            # The scheme is that of BASE_URL, and the client's address is read behind PROXY_HOPS.
            "forwarded_allow_ips": "",
            "backlog": 2048,
            "graceful_timeout": STOP_SECONDS + EXIT_SECONDS,
            "timeout": SILENT_SECONDS,
            "loglevel": "error",
            "logger_class": JsonLogger,
            "control_socket_disable": True,
            "pre_fork": number_worker,
            "post_fork": prepare_worker,
            "post_worker_init": guard_connections,
            "worker_exit": end_worker,
        }
        for name, value in options.items():
            self.cfg.set(name, value)
        self.connection_counts = connection_counts(self.cfg.workers)

    def load(self) -> AsgiApplication:
        """The ASGI application of a worker, which is a fork and uses what its parent imported."""
        application: Handle = import_app(self.target)
        # Loaded modules stay; without this each garbage collection would scan them for 50 ms.
        gc.freeze()
        card_threads = settings.CARD_CONCURRENCY * concurrency.THREADS_PER_CALL if apps.ready else 0
        return AsgiApplication(application, WEB_THREADS, card_threads)


def number_worker(server: Arbiter, worker: Worker) -> None:
    """Give a new worker the lowest free number. The parent calls this before the fork."""
    taken = {each.number for each in server.WORKERS.values()}
    worker.number = min(set(range(len(taken) + 1)) - taken)


def prepare_worker(server: Arbiter, worker: Worker) -> None:
    """Bind the worker to its parent. The worker calls this after the fork."""
    worker.cfg.set("graceful_timeout", STOP_SECONDS)
    # Workers of a killed parent would keep the port.
    exit_with_parent(server.pid, signal.SIGKILL)
    if apps.ready:
        from config import observation

        observation.begin(f"web-{worker.number}")


def guard_connections(worker: Worker) -> None:
    """Add the limits of connections and their shares. The worker calls this before it listens."""
    worker.loop.create_server = fair_server(worker.app.connection_counts, worker.number)


def end_worker(server: Arbiter, worker: Worker) -> None:
    """Write what the worker still holds in memory. The worker calls this when it ends."""
    if apps.ready:
        from config import observation
        from request_log.recorder import RECORDER

        RECORDER.write()
        observation.end()


def serve(target: str) -> None:
    """Serve until stopped. Imports the application first, because workers are forks."""
    import_app(target)
    if apps.ready:
        # Workers must not share the connection that the checks of the application opened.
        connections.close_all()
    # Each connection is an open file, and many systems allow 1024 by default.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    WebServer(target).run()


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else APPLICATION)
