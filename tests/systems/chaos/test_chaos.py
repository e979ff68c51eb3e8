"""Three machines, whose processes end and freeze at random: nothing acknowledged is lost or done twice.

`make chaos` runs it for ten minutes with 200 faults and 50,000 operations.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import psycopg
import pytest

from tests.patroni import Cluster
from tests.stack import Stack, wait_until
from tests.systems.chaos.conftest import EVENTS
from tests.systems.chaos.faults import Faults
from tests.systems.chaos.shops import PATIENCE, Shop, working
from tests.webhook_receiver import Receiver

log = logging.getLogger(__name__)
pytestmark = pytest.mark.slow
SECONDS, FAULTS, OPERATIONS = (
    int(os.environ.get(f"CHAOS_{name}", normal))
    for name, normal in (("SECONDS", 20), ("FAULTS", 8), ("OPERATIONS", 200))
)
# A bank's answer may be asked for again after some minutes, when the worker that had asked was killed.
REST_SECONDS = 400
REST_POLL_SECONDS = 1.0


def test_nothing_acknowledged_is_lost_or_done_twice(
    machines: Sequence[Stack], cluster: Cluster, shops: list[Shop], receiver: Receiver, seed: str
) -> None:
    faults = Faults(machines, cluster, Random(seed), pause=SECONDS / FAULTS / 1.5)
    ending = time.monotonic() + SECONDS
    with working(shops):
        while time.monotonic() < ending or faults.done.total() < FAULTS or operations(shops) < OPERATIONS:
            faults.cause_next()
            assert time.monotonic() < ending + 2 * SECONDS + PATIENCE, (faults.done, operations(shops))
    assert not [shop.answers[500] for shop in shops if shop.answers[500]]
    log.info("%d operations, %d faults: %s", operations(shops), faults.done.total(), dict(faults.done))
    for number, shop in enumerate(shops):
        wait_for_rest(shop, cluster)
        check_objects(shop)
        check_balance(shop, bank_orders(cluster))
        check_events(shop, receiver, f"/{number}")
    log.info(machines[0].manage("audit"))


def operations(shops: Sequence[Shop]) -> int:
    return sum(shop.operations for shop in shops)


def bank_orders(cluster: Cluster) -> set[str]:
    """The refunds and withdrawals that the bank carried out."""
    with psycopg.connect(cluster.owner_url) as connection:
        return {row[0] for row in connection.execute("SELECT reference FROM sandbox_sandboxorder")}


def queued_orders(cluster: Cluster) -> set[str]:
    """The refunds and withdrawals that are still to be sent."""
    with psycopg.connect(cluster.owner_url) as connection:
        return {
            row[0] for row in connection.execute("SELECT id FROM transfers_transfer WHERE state = 'queued'")
        }


def wait_for_rest(shop: Shop, cluster: Cluster) -> None:
    """Return when each paid payment succeeded, each order was sent, and each that the bank has ended.

    An order whose worker ended just before it was sent stays open: only a person may say that the bank will
    never have it. Its money stays reserved.
    """
    deadline = time.monotonic() + REST_SECONDS
    while waiting := unfinished(shop, queued_orders(cluster) | bank_orders(cluster)):
        assert time.monotonic() < deadline, waiting
        time.sleep(REST_POLL_SECONDS)


def unfinished(shop: Shop, orders: set[str]) -> list[dict[str, Any]]:
    payments = [each for each in shop.everything("payments") if each["payment_id"] in set(shop.paid)]
    return [
        each
        for each in [*payments, *money_out(shop)]
        if is_waiting(each) and (each in payments or transfer_id(each) in orders)
    ]


def money_out(shop: Shop) -> list[dict[str, Any]]:
    return shop.everything("refunds") + shop.everything("withdrawals")


def transfer_id(found: dict[str, Any]) -> str:
    return str(found.get("refund_id") or found["withdrawal_id"])


def is_waiting(found: dict[str, Any]) -> bool:
    return found["status"] in ("pending", "processing")


def check_objects(shop: Shop) -> None:
    """The service has what it acknowledged, each once, and nothing else."""
    payments = shop.everything("payments")
    assert Counter(each["payment_id"] for each in payments) == Counter(
        each["payment_id"] for each in shop.codes
    )
    assert {each["payment_id"] for each in payments if each["status"] == "succeeded"} == set(shop.paid)
    assert len(set(shop.paid)) == len(shop.paid)
    for kind, known in (("refund", shop.refunds), ("withdrawal", shop.withdrawals)):
        found = shop.everything(f"{kind}s")
        assert Counter(each[f"{kind}_id"] for each in found) == Counter(known)


def check_balance(shop: Shop, at_the_bank: set[str]) -> None:
    """The balance is what came in, less what the bank carried out; what it never got is reserved."""
    payments = shop.everything("payments")
    received = sum(each["amount"] for each in payments if each["status"] == "succeeded")
    sent = [each for each in money_out(shop) if transfer_id(each) in at_the_bank]
    assert {each["status"] for each in sent} <= {"completed", "succeeded"}
    reserved = sum(each["amount"] for each in money_out(shop) if is_waiting(each))
    balance = shop.get("/v1/balance")
    assert balance["reserved"] == reserved
    assert balance["available"] == received - sum(each["amount"] for each in sent) - reserved


def check_events(shop: Shop, receiver: Receiver, path: str) -> None:
    """There is one event for each change, and each arrived."""
    events = [each for each in shop.everything("events") if each["event"] in EVENTS]
    ids = {each["event_id"] for each in events}
    assert len(ids) == len(events)
    kinds = Counter(each["event"] for each in events)
    assert kinds["payment.pending"] == len(shop.codes)
    assert kinds["payment.succeeded"] == len(shop.paid)
    ended = Counter(each["status"] for each in money_out(shop))
    assert kinds["refund.completed"] == ended["completed"]
    assert kinds["withdrawal.succeeded"] == ended["succeeded"]

    def arrived() -> set[str]:
        return {each.headers["webhook-id"] for each in receiver.to(path)}

    wait_until(lambda: ids <= arrived(), REST_SECONDS)
