"""Whole lives of payments: the service, and its floor, pgbench with the same statements.

The floor has a database of its own on the same server, with the same tables. No worker uses it.
"""

import logging
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from urllib.parse import urlsplit

import django
import psycopg

from bench.cost import Cost
from bench.deliveries import run_driver
from bench.http import Endpoint, NotMeasurable
from bench.rounds import OURS, RATE, Candidate, Figures, quantiles, run_rounds
from bench.stack import ROOT, DetachedStack, wait_until
from config.devstack.postgres_programs import find_programs
from config.env import OWNER_URL

FLOOR = "(b) pgbench, same SQL"
AT_ONCE = 16
# All sessions have planned their statements by then.
WARM_UP_SECONDS, SECONDS = 3, 5.0
# A worker records a delivery some milliseconds after its webhook arrived.
RECORDED_SECONDS = 10.0
COUNT = re.compile(r"^number of transactions actually processed: ([0-9]+)", re.MULTILINE)
PROGRESS = re.compile(r"^progress: [0-9.]+ s, ([0-9.]+) tps", re.MULTILINE)
# The payments of whole lives. Whatever a life has twice makes two rows.
WHOLE_LIVES = """
SELECT payment.id FROM payments_payment AS payment
JOIN reconciliation_banktransaction AS reported
    ON reported.payment_id = payment.id AND reported.match_result = 'applied'
JOIN reconciliation_banknotification AS notification ON notification.bank_transaction_id = reported.id
JOIN transactions_transaction AS history ON history.payment_id = payment.id AND history.status = 'succeeded'
JOIN ledger_journal AS journal ON journal.subject_id = payment.id AND journal.amount = payment.amount
JOIN webhooks_event AS event ON event.subject_id = payment.id AND event.type = 'payment.succeeded'
JOIN webhooks_delivery AS delivery ON delivery.event_id = event.id AND delivery.state = 'succeeded'
JOIN webhooks_deliveryattempt AS attempt ON attempt.delivery_id = delivery.id AND attempt.error = ''
WHERE payment.status = 'succeeded' AND (
    SELECT count(*) = 2 AND sum(entry.amount) = 0 FROM ledger_entry AS entry
    WHERE entry.journal_id = journal.id
)
"""
ALL_LIVES = """
SELECT payment.id FROM payments_payment AS payment
JOIN merchants_merchant AS merchant ON merchant.id = payment.merchant_id WHERE merchant.name = 'Measured shop'
"""


def measure(stack: DetachedStack, folder: Path, rounds: int) -> list[Candidate]:
    """The service and its floor. Raises NotMeasurable."""
    benchmark, floor = _LifeBenchmark(stack), _Floor(stack, folder)
    candidates = [Candidate(OURS, benchmark.live), Candidate(FLOOR, floor.repeat)]
    run_rounds("life", candidates, warm_up=WARM_UP_SECONDS, extent=SECONDS, rounds=rounds)
    _check(stack.owner_url, benchmark.count)
    _check(floor.url)
    try:
        stack.manage("audit")
    except subprocess.CalledProcessError as error:
        raise NotMeasurable(f"The audit found differences:\n{error.stdout}") from None
    return candidates


class _LifeBenchmark:
    """The load of `thaiqr-server capacity`. This process gets the settings of the instance for it."""

    def __init__(self, stack: DetachedStack) -> None:
        os.environ.update(stack.env)
        os.environ["WEBHOOK_PROBE"] = "off"
        django.setup()
        logging.disable()  # its lines would be about the shops of the measurement
        from config.capacity.load import Load

        self._stack, self._load, self.count = stack, Load(stack.port), 0

    def live(self, seconds: float) -> Figures:
        cost = Cost(self._stack, {self._stack.pids[name]: name for name in ("web", "webhooks")})
        done = self._load.lives(AT_ONCE, seconds)
        self.count += len(done.webhooks)
        return {RATE: done.rate, **quantiles(done.webhooks), **cost.each(len(done.webhooks))}


class _Floor:
    """The database with its shops, and the script of one life. Each client of pgbench is a shop."""

    def __init__(self, stack: DetachedStack, folder: Path) -> None:
        """Record the life. Raises NotMeasurable."""
        self._stack = stack
        with psycopg.connect(stack.owner_url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE floor")
        self.url = f"{stack.owner_url.rpartition('/')[0]}/floor"
        environ = {**stack.environ, **stack.env, "DATABASE_URL": self.url, OWNER_URL: self.url}
        migrate = [sys.executable, "manage.py", "migrate", "--skip-checks", "--verbosity=0"]
        subprocess.run(migrate, cwd=ROOT, env=environ, check=True)
        endpoint = Endpoint(lambda *message: None)
        with endpoint.runner as runner:
            text, self._variables = runner.run(run_driver(environ, "record", AT_ONCE, endpoint.url))
        self._path = folder / "life.sql"
        self._path.write_text(text)

    def repeat(self, seconds: float) -> Figures:
        """Run pgbench. New sessions plan each statement several times, so the first seconds do not count."""
        cost, url = Cost(self._stack, {}), urlsplit(self.url)
        done = subprocess.run(
            [
                *(find_programs() / "pgbench", "--no-vacuum", "--protocol=prepared", f"--file={self._path}"),
                *(f"--client={AT_ONCE}", "--jobs=1", f"--time={WARM_UP_SECONDS + round(seconds)}"),
                *("--progress=1", *(f"--define={name}={value}" for name, value in self._variables.items())),
                *("-h", str(url.hostname), "-p", str(url.port), "-U", str(url.username), url.path[1:]),
            ],
            env={**os.environ, "PGPASSWORD": str(url.password)},
            capture_output=True,
            text=True,
            check=False,
        )
        found = COUNT.search(done.stdout)
        if done.returncode or found is None:
            raise NotMeasurable(f"pgbench: {done.stderr}")
        rates = [float(rate) for rate in PROGRESS.findall(done.stderr)[WARM_UP_SECONDS:]]
        return {RATE: fmean(rates), **cost.each(int(found[1]))}


def _check(url: str, seen: int | None = None) -> None:
    """Check that all payments of the shops are whole lives, as many as were seen. Raises NotMeasurable."""

    def found(statement: str) -> list[tuple[str]]:
        return sorted(connection.execute(statement).fetchall())

    with psycopg.connect(url, autocommit=True) as connection:
        with suppress(TimeoutError):
            wait_until(lambda: seen is None or len(found(WHOLE_LIVES)) == seen, RECORDED_SECONDS)
        whole, all_ = found(WHOLE_LIVES), found(ALL_LIVES)
    if whole != all_ or seen not in (None, len(all_)):
        raise NotMeasurable(f"Of {len(all_)} payments {len(whole)} are whole lives. The shops saw {seen}.")
