"""`thaiqr-server capacity`: prepare, measure, clean up, report."""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from config.capacity import database, environment, processes, progress, redis_database
from config.capacity.database import Addresses
from config.capacity.load import NotMeasurable
from config.capacity.refusal import Refused
from config.env import OWNER_URL, env
from core.clock import BANGKOK
from core.redis_urls import with_authorities

SIGNAL_EXIT = 128
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTICE = (
    "This takes all processors for about {seconds:.0f} seconds, and half a minute before that. It uses a\n"
    "database of its own, which it drops at the end. Run it before you go live, or at a quiet hour.\n"
)


def run(seconds: float, html: Path | None) -> int:
    """Print the report, and write the page. Returns the exit code."""
    try:
        with _clean_end():
            _measure(seconds, html)
    except (Refused, NotMeasurable) as refusal:
        sys.stderr.write(f"Not measured: {refusal}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. The database of the measurement is dropped.\n")
        return SIGNAL_EXIT + signal.SIGINT
    return 0


def _redis_url() -> str:
    return with_authorities(env.str("REDIS_URL", ""), env.str("CA_BUNDLE", ""))


def _measure(seconds: float, html: Path | None) -> None:
    if html is not None:
        _check_writable(html)
    sys.stderr.write(NOTICE.format(seconds=seconds))
    with ExitStack() as stack:
        databases = stack.enter_context(database.temporary(_configured()))
        redis_url = stack.enter_context(redis_database.temporary(_redis_url()))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="thaiqr-capacity-"))
        ports = environment.free_ports()
        settings = environment.environment(databases, redis_url, ports)
        started = stack.enter_context(processes.running(settings, Path(folder) / "log"))
        with progress.step("tables"):
            started.run("migrate")
        with progress.step("processes"):
            started.start(ports.bank)
            started.wait_until_ready(ports.web)
        report, page = _report(databases, settings, seconds, started)
        # Before the clean-up: an error of it must not cost the figures.
        if html is not None:
            html.write_text(page, encoding="utf-8")
            sys.stderr.write(f"The page is {html}.\n")
        sys.stdout.write(report)


def _report(
    databases: Addresses, settings: dict[str, str], seconds: float, started: processes.Processes
) -> tuple[str, str]:
    """Measure, by code that needs the settings of the measured processes."""
    environment.take_over(settings)
    import django

    django.setup()
    logging.disable()  # its lines would be about the shops of the measurement
    from config.capacity import page, text, verdict
    from config.capacity.measuring import Measurement

    figures = Measurement(databases, settings, seconds).run(started.pids)
    started.check()
    judged = verdict.judge(figures)
    made_at = f"{datetime.now(BANGKOK):%Y-%m-%d %H:%M}"
    return text.report(figures, judged), page.report(figures, judged, made_at)


def _configured() -> Addresses:
    url = env.str("DATABASE_URL", "")
    if not url:
        raise Refused("DATABASE_URL is missing: the settings of the deployment are needed, or --env-file.")
    return Addresses.of(url, env.str(OWNER_URL, ""))


def _check_writable(path: Path) -> None:
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        raise Refused(f"{path} cannot be written.")


@contextmanager
def _clean_end() -> Iterator[None]:
    """All signals that end a program let it clean up, as Ctrl-C does. A second one does not stop that."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
