"""Codes that are made and paid while the broker fails, and the signs that tasks arrive."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg

from config.workers import ALL
from tests.flows.conftest import SECRET, ShopClient
from tests.stack import Stack, wait_for_progress, wait_until
from tests.webhook_receiver import Receiver

EVENTS = ["payment.succeeded", "refund.completed", "withdrawal.succeeded"]
PATIENCE = 120.0
# The documentation says 30. A busy machine may take twice as long.
TASKS_SECONDS = 60.0
PAUSE = 0.2


class Lives:
    """Makes codes and pays them. Every request must succeed."""

    def __init__(self, client: ShopClient, endpoint: Receiver) -> None:
        self.client, self.endpoint = client, endpoint
        client.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS, "secret": SECRET})
        self.paid: list[str] = []
        self.stopping = threading.Event()

    def pay_one(self) -> str:
        """Make a code and pay it; return the payment id."""
        code = self.client.qr_code()
        self.client.pay(code)
        self.paid.append(code["payment_id"])
        return str(code["payment_id"])

    @contextmanager
    def without_end(self, shops: int = 2) -> Iterator[None]:
        """Go on during the block, and raise what failed."""
        with ThreadPoolExecutor(shops) as pool:
            runs = [pool.submit(self._run) for _ in range(shops)]
            try:
                yield
            finally:
                self.stopping.set()
            for run in runs:
                run.result()

    def wait_for_more(self, count: int) -> None:
        """Return when so many more are paid."""
        wait_for_progress(lambda: len(self.paid), len(self.paid) + count, PATIENCE)

    def told(self, event: str = "payment.succeeded") -> set[str]:
        """The payments, refunds or withdrawals about which the shop was told."""
        kind = event.partition(".")[0]
        received = [each.json for each in self.endpoint.to("/hook")]
        return {each["data"][f"{kind}_id"] for each in received if each["event"] == event}

    def wait_until_all_are_told(self) -> None:
        wait_for_progress(lambda: len(self.told() & set(self.paid)), len(set(self.paid)), PATIENCE)
        assert self.told() == set(self.paid)

    def send_money_out(self) -> None:
        """Refund a payment and withdraw money, and wait until the shop was told."""
        refund = self.client.post("/v1/refunds", {"payment_id": self.paid[0], "amount": 50_000})
        account = {"bank_code": "014", "bank_account": "1234567890", "account_name": "Somtam House"}
        withdrawal = self.client.post("/v1/withdrawals", {"amount": 20_000, "currency": "THB"} | account)
        wait_until(lambda: self.told("refund.completed") == {refund["refund_id"]}, PATIENCE)
        wait_until(lambda: self.told("withdrawal.succeeded") == {withdrawal["withdrawal_id"]}, PATIENCE)

    def _run(self) -> None:
        while not self.stopping.wait(PAUSE):
            self.pay_one()


def wait_for_tasks(stack: Stack) -> None:
    """Wait until each queue has run a task that the broker carries from now on. Raises TimeoutError."""
    began = datetime.now(UTC)
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as connection:
        statement = "SELECT count(*) FROM operations_heartbeat WHERE recorded_at > %s AND name = ANY(%s)"
        values = (began, list(ALL.queues))
        expected = (len(ALL.queues),)
        wait_until(lambda: connection.execute(statement, values).fetchone() == expected, TASKS_SECONDS)
