"""The processes of an instance beside its servers."""

import sys
from collections.abc import Mapping

from config.devstack.programs import Program

CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "config.celery:app")
# Mingling and gossip are for many workers that know each other; they cost three seconds at the start.
WORKER = (*CELERY, "worker", "--without-mingle", "--without-gossip", "--loglevel", "WARNING", "-P", "threads")


def manage(name: str, environ: Mapping[str, str], *arguments: str, is_captured: bool = False) -> Program:
    """A management command."""
    return Program(name, [sys.executable, "manage.py", *arguments], environ, is_captured=is_captured)


def web(environ: Mapping[str, str]) -> Program:
    """The web server."""
    return Program("web", [sys.executable, "-m", "config.server"], environ)


def workers(environ: Mapping[str, str]) -> list[Program]:
    """Workers, clock and the sandbox bank. A slow webhook or bank never delays other tasks."""
    # In a container everything is root's; Celery's warning about it helps nobody here.
    worker_environ = {**environ, "PYTHONWARNINGS": "ignore:::celery.platforms"}
    beat = (*CELERY, "beat", "--loglevel", "WARNING", "--pidfile=")
    return [
        Program("webhooks", [*WORKER, "-Q", "webhooks", "-c", "4", "-n", "webhooks@%h"], worker_environ),
        # One process for three queues: each limits its own runs, so that together they fit into the threads.
        Program(
            "banks",
            [*WORKER, "-Q", "cards,transfers,inquiries", "-c", "20", "-n", "banks@%h"],
            worker_environ,
        ),
        Program("default", [*WORKER, "-Q", "default", "-c", "4", "-n", "default@%h"], worker_environ),
        Program("beat", beat, environ),
        manage("bank", environ, "sandbox_bank"),
    ]
