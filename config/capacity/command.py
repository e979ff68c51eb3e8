"""`thaiqr-server capacity`: prepare, measure, clean up, report."""

import logging
import os
import signal
import statistics
import sys
import tempfile
import timeit
from contextlib import ExitStack
from pathlib import Path

import psycopg

from config.capacity import databases, processes
from config.capacity.databases import Refused
from config.env import OWNER_URL, env
from core.work.redis_urls import with_authorities

AT_ONCE, WARM_UP_SECONDS, COMMITS = (1, 4, 16, 48), 3.0, 300
SIZE = "SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_stat_user_tables"


def run(seconds: float) -> int:
    """Print the report; return the exit code. Signals that end a program let it clean up, as Ctrl-C does.

    SIGINT too: a shell lets programs in the background ignore it.
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)
    try:
        sys.stdout.write(_measured(seconds))
    except Refused as refusal:
        sys.stderr.write(f"Not measured: {refusal}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. The database of the measurement is dropped.\n")
        return 128 + signal.SIGINT
    return 0


def _measured(seconds: float) -> str:
    url = env.str("DATABASE_URL", "")
    if not url:
        raise Refused("DATABASE_URL is missing: the settings of the deployment are needed, or --env-file.")
    configured = databases.on_one_server(url, env.str(OWNER_URL, ""))
    redis_url = with_authorities(env.str("REDIS_URL", ""), env.str("CA_BUNDLE", ""))
    sys.stderr.write(f"This takes all processors for {seconds + 30:.0f} seconds.\n")
    with ExitStack() as stack:
        made = stack.enter_context(databases.temporary_database(configured))
        settings = processes.settings(made, stack.enter_context(databases.temporary_redis(redis_url)))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="thaiqr-capacity-"))
        started = processes.Processes(settings, Path(folder) / "log")
        stack.callback(started.stop)
        started.start()
        # This process has the settings of the measured ones, too. Nothing has read others yet.
        os.environ.clear()
        os.environ.update(settings)
        env.ENVIRON = os.environ
        return _report(made.owner, seconds, started)


def _report(owner_url: str, seconds: float, started: processes.Processes) -> str:
    import django
    from django.conf import settings
    from django.db import connections

    django.setup()
    logging.disable()  # its lines would be about the shops of the measurement
    from config.capacity.figures import Processors, report
    from config.capacity.load import Load

    load, rounds = Load(int(os.environ["PORT"])), []
    connections.close_all()
    sessions = {process.pid: name for name, process in started.running.items()}
    processors = Processors(os.environ["DATABASE_URL"], sessions)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        # One commit after the other, in one session: mostly one fsync.
        connection.execute("CREATE TABLE capacity_commits (number integer)")
        insert = "INSERT INTO capacity_commits VALUES (1)"
        commits = timeit.repeat(lambda: connection.execute(insert), number=1, repeat=COMMITS)
        sys.stderr.write("warming up ...\n")
        load.lives(AT_ONCE[1], WARM_UP_SECONDS)
        (before,) = connection.execute(SIZE).fetchone() or (0,)
        for at_once in AT_ONCE:
            sys.stderr.write(f"whole lives, {at_once} at once ...\n")
            with processors.watching() as cores:
                rounds.append(load.lives(at_once, seconds / len(AT_ONCE)))
            rounds[-1].cores = cores
        (after,) = connection.execute(SIZE).fetchone() or (0,)
    started.check()
    bytes_each = (after - before) / sum(len(each.webhooks) for each in rounds)
    commit_ms = 1000 * statistics.median(commits)
    return report(rounds, web_workers=settings.WEB_WORKERS, commit_ms=commit_ms, bytes_each=bytes_each)
