"""Whole lives of payments: the service and its floor, pgbench with the same statements."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from bench import processors
from bench.comparison import OURS, Candidate
from bench.deliveries import run_driver
from bench.floor import Floor
from bench.lives import Lives, LivesResult, quantile
from bench.load import NotMeasurable
from bench.shops import Bank, Shop
from tests.stack import Stack, wait_until

FLOOR = "(b) pgbench, same SQL"
WEB, SENDER, POSTGRES = "web", "webhooks", "postgres"
SHOPS = 20
# A worker records a delivery some milliseconds after its webhook arrived.
RECORDED_SECONDS = 10.0
# The payments of whole lives. Whatever a life has twice makes two rows.
WHOLE_LIVES = """
SELECT payment.id FROM payments_payment AS payment
JOIN reconciliation_banktransaction AS reported
    ON reported.payment_id = payment.id AND reported.match_result = 'applied'
JOIN reconciliation_banknotification AS notification ON notification.movement_id = reported.id
JOIN transactions_transaction AS history ON history.payment_id = payment.id AND history.status = 'succeeded'
JOIN ledger_journal AS journal ON journal.subject_id = payment.id AND journal.amount = payment.amount
JOIN webhooks_event AS event ON event.subject_id = payment.id AND event.type = 'payment.succeeded'
JOIN webhooks_delivery AS delivery ON delivery.event_id = event.id AND delivery.state = 'succeeded'
JOIN webhooks_deliveryattempt AS attempt ON attempt.delivery_id = delivery.id AND attempt.error = ''
WHERE payment.status = 'succeeded' AND payment.merchant_id = ANY(%s) AND (
    SELECT count(*) = 2 AND sum(entry.amount) = 0 FROM ledger_entry AS entry
    WHERE entry.journal_id = journal.id
)
"""
ALL_LIVES = "SELECT id FROM payments_payment WHERE merchant_id = ANY(%s)"
MERCHANTS = "SELECT id FROM merchants_merchant"


@dataclass(frozen=True)
class LifeRound:
    """Whole lives a second, milliseconds from code to webhook, and processor microseconds a life.

    requests: the seconds of each request, by its name.
    """

    rate: float
    postgres_us: float | None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    web_us: float | None = None
    sender_us: float | None = None
    others_us: float | None = None
    client_us: float | None = None
    requests: Mapping[str, list[float]] = field(default_factory=dict)


class LifeBenchmark:
    """The shops of one instance."""

    def __init__(self, stack: Stack, lives: Lives, merchant_ids: list[str]) -> None:
        self.stack, self.lives, self._merchant_ids = stack, lives, merchant_ids

    def candidates(self, floor: Floor, at_once: int) -> list[Candidate[float, LifeRound]]:
        """Rounds of so many seconds."""

        def live(seconds: float) -> LifeRound:
            before = processor_seconds(self.stack)
            result = self.lives.closed_loop(seconds=seconds, at_once=at_once)
            return _life_round(result, before, processor_seconds(self.stack))

        def repeat(seconds: float) -> LifeRound:
            before = processor_seconds(self.stack)[POSTGRES]
            run = floor.run(seconds)
            used = processor_seconds(self.stack)[POSTGRES] - before
            return LifeRound(run.rate, postgres_us=1e6 * used / run.count)

        return [Candidate(OURS, live), Candidate(FLOOR, repeat)]

    def check(self) -> None:
        """Compare the tables with what the shops saw, and run the audit. Raises NotMeasurable."""
        seen = sorted(self.lives.payment_ids)
        with psycopg.connect(self.stack.owner_url, autocommit=True) as connection:
            with suppress(TimeoutError):
                wait_until(
                    lambda: _ids(connection, WHOLE_LIVES, self._merchant_ids) == seen, RECORDED_SECONDS
                )
            for name, statement in (("whole lives", WHOLE_LIVES), ("payments", ALL_LIVES)):
                found = _ids(connection, statement, self._merchant_ids)
                if found != seen:
                    raise NotMeasurable(
                        f"The shops saw {len(seen)} lives; the tables have {len(found)} {name}."
                    )
        try:
            self.stack.manage("audit")
        except subprocess.CalledProcessError as error:
            raise NotMeasurable(f"The audit found differences:\n{error.stdout}") from None


@contextmanager
def opened(stack: Stack) -> Iterator[LifeBenchmark]:
    """Open the shops with their webhooks."""
    bank = Bank(stack.env["SANDBOX_BANK_SECRET"].encode())
    with Lives(stack.port, bank, SHOPS) as lives:
        shops = [Shop(**shop) for shop in run_driver(stack, "open_shops", *lives.urls)]
        lives.open(shops)
        yield LifeBenchmark(stack, lives, [shop.merchant_id for shop in shops])


def check_floor(floor: Floor) -> None:
    """Check that what pgbench wrote are whole lives. Raises NotMeasurable."""
    with psycopg.connect(floor.database_url) as connection:
        merchant_ids = [merchant_id for (merchant_id,) in connection.execute(MERCHANTS)]
        whole, all_ = (_ids(connection, statement, merchant_ids) for statement in (WHOLE_LIVES, ALL_LIVES))
    if whole != all_:
        raise NotMeasurable(f"Of {len(all_)} lives of pgbench {len(whole)} are whole.")


def processor_seconds(stack: Stack) -> dict[str, float]:
    """By process, with the processes that it started."""
    return {name: processors.cpu_seconds(pid) or 0.0 for name, pid in stack.pids.items()}


def _ids(connection: psycopg.Connection[Any], statement: str, merchant_ids: list[str]) -> list[str]:
    return sorted(row[0] for row in connection.execute(statement, [merchant_ids]))


def _life_round(result: LivesResult, before: dict[str, float], after: dict[str, float]) -> LifeRound:
    used = {name: 1e6 * (after[name] - before[name]) / result.count for name in after}
    p50, p95, p99 = (quantile(result.webhooks, share) for share in (0.5, 0.95, 0.99))
    return LifeRound(
        result.rate,
        used.pop(POSTGRES),
        *(p50, p95, p99, used.pop(WEB), used.pop(SENDER), sum(used.values())),
        1e6 * result.client_seconds / result.count,
        result.requests,
    )
