"""The primary is killed while shops work: the standby takes over, nothing acknowledged is lost or doubled.

Then staff switch over on purpose. The service finds the primary by itself, or PgBouncer and HAProxy lead to
it. `make failover` runs both with 20,000 operations and five kills. `-rP` prints the times.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import haproxy
from tests.flows.conftest import SECRET, ShopClient
from tests.patroni import Cluster, running_cluster
from tests.pooled_stack import PooledStack
from tests.stack import Stack, wait_for_progress, wait_until
from tests.systems.failover.lives import AMOUNT, REFUND, Lives, lived
from tests.webhook_receiver import Receiver
from webhooks import bodies

pytestmark = pytest.mark.slow
OPERATIONS = int(os.environ.get("FAILOVER_OPERATIONS", "200"))
BETWEEN_KILLS = 4_000
KILLS = max(1, OPERATIONS // BETWEEN_KILLS)
SHOPS = 6
# Beside other tests the machine is busy, and shops that rest leave it to them while servers take over.
LONGEST_PAUSE, REST = (30.0, 0.0) if KILLS > 1 else (90.0, 1.0)
SECONDS = 120.0
EVENTS = ["payment.pending", "payment.succeeded", "refund.completed"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture(params=[Stack, PooledStack], ids=["direct", "behind PgBouncer and HAProxy"])
def stack(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[Stack]:
    settings = {"RATE_LIMIT": "0", "SPEEDUP": "20", "SYNCHRONOUS_STANDBY": "1", **cluster.urls}
    with ExitStack() as proxies:
        if request.param is PooledStack:
            settings["DATABASE_URL"] = proxies.enter_context(haproxy.in_front_of(cluster, tmp_path))
        with request.param(tmp_path / "data", **settings) as running:
            cluster.wait_for_standby()
            yield running


def test_killed_primary_and_switchover_lose_and_double_nothing(
    cluster: Cluster, stack: Stack, endpoint: Receiver, request: pytest.FixtureRequest
) -> None:
    made = json.loads(stack.manage("create_merchant", "--name", "Somtam", "--mode", "test", "--json"))
    client = ShopClient(stack.base_url, made["secret_key"])
    client.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS, "secret": SECRET})

    lives, kills, started = Lives(client, OPERATIONS, REST), [], time.monotonic()
    with lived(lives, SHOPS):
        for number in range(KILLS):
            lives.wait_for(lives.count + (OPERATIONS - lives.count) // (KILLS - number + 1))
            if number:
                cluster.wait_for_standby()
            kills.append(kill_primary(cluster, lives))
        cluster.wait_for_standby()
        switch = switch_over(cluster, lives)
    seconds = time.monotonic() - started
    report = [f"{lives.count} operations in {seconds:.0f} s; repeated after {dict(lives.refusals)}"]
    for kill in kills:
        kill["sending"] = first_order_after(cluster, kill["died_at"]) - kill["killed_at"]
        report.append("after a kill: service {service:.1f} s, outgoing money {sending:.1f} s".format(**kill))
    report.append(f"after switching over: service {switch:.1f} s")
    wait_for_progress(lambda: len(completed(cluster)) + len(in_doubt(cluster)), len(lives.refunds), SECONDS)
    report.append(f"{len(in_doubt(cluster))} refunds in doubt")
    lives.refunds_in_doubt = in_doubt(cluster)
    check_objects(cluster, client, lives)
    check_events(cluster, endpoint, lives)
    stack.manage("audit")
    request.node.add_report_section("call", "times", "\n".join(report))
    assert "500 internal_error" not in lives.refusals
    assert max(switch, *(kill["service"] for kill in kills)) < LONGEST_PAUSE, report
    assert max(kill["sending"] for kill in kills) < LONGEST_PAUSE, report


def kill_primary(cluster: Cluster, lives: Lives) -> dict[str, float]:
    """Kill it, and wait until the standby took over and the service goes on. Then start it as the standby.

    Return the time of the kill, and the seconds until an operation was acknowledged again.
    """
    lost = cluster.primary()
    killed_at, killed = time.time(), time.monotonic()
    lost.kill()
    died_at = time.time()
    (other,) = [node for node in cluster.nodes if node is not lost]
    wait_until(other.is_primary, SECONDS)
    lives.wait_for(lives.count + SHOPS + 1)
    cluster.start(lost)
    return {"killed_at": killed_at, "died_at": died_at, "service": lives.pause_after(killed)}


def switch_over(cluster: Cluster, lives: Lives) -> float:
    """Return the seconds until operations were acknowledged again."""
    started = time.monotonic()
    cluster.switch_over()
    lives.wait_for(lives.count + SHOPS + 1)
    return lives.pause_after(started)


def first_order_after(cluster: Cluster, instant: float) -> float:
    """When the bank got the first order after an instant."""
    query = "SELECT min(extract(epoch FROM created_at)) AS at FROM sandbox_sandboxorder"
    ((found,),) = rows(cluster, f"{query} WHERE created_at > to_timestamp(%s)", instant)
    return float(found)


def completed(cluster: Cluster) -> set[str]:
    """The refunds that the bank carried out."""
    return {each for (each,) in rows(cluster, "SELECT id FROM refunds_refund WHERE status = 'completed'")}


def in_doubt(cluster: Cluster) -> set[str]:
    """The refunds whose order was interrupted on its way: the simulated bank is in the database that died.

    It may still arrive, so it is never sent again, and staff decide. Their money stays reserved.
    """
    query = """SELECT id FROM transfers_transfer WHERE state = 'submitted' AND inquiries > 0
               AND id NOT IN (SELECT reference FROM sandbox_sandboxorder)"""
    return {each for (each,) in rows(cluster, query)}


def rows(cluster: Cluster, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(cluster.owner_url) as connection:
        return connection.execute(query, values).fetchall()


def check_objects(cluster: Cluster, client: ShopClient, lives: Lives) -> None:
    """Each acknowledged operation is there once, and there is nothing else."""
    payments = rows(cluster, "SELECT reference, id, status FROM payments_payment")
    assert Counter(payments) == Counter(
        (reference, payment_id, "succeeded") for reference, payment_id in lives.codes.items()
    )
    at_bank = rows(cluster, "SELECT id FROM sandbox_sandboxpayment")
    assert Counter(at_bank) == Counter((payment_id,) for payment_id in lives.bank_payments)
    money_in = rows(cluster, "SELECT payment_id, match_result FROM reconciliation_banktransaction")
    assert Counter(money_in) == Counter((payment_id, "applied") for payment_id in lives.codes.values())
    refunds = rows(cluster, "SELECT id, payment_id, status FROM refunds_refund")
    assert Counter(refunds) == Counter(
        (refund_id, payment_id, "pending" if refund_id in lives.refunds_in_doubt else "completed")
        for refund_id, payment_id in lives.refunds.items()
    )
    orders = rows(cluster, "SELECT reference, amount FROM sandbox_sandboxorder")
    assert Counter(orders) == Counter(
        (refund_id, REFUND) for refund_id in lives.refunds.keys() - lives.refunds_in_doubt
    )
    expected = len(lives.codes) * AMOUNT - len(lives.refunds) * REFUND
    assert client.get("/v1/balance")["available"] == expected


def check_events(cluster: Cluster, endpoint: Receiver, lives: Lives) -> None:
    """One event of each kind, and each reached the shop, always with the same bytes."""
    stored = {
        event_id: (kind, subject, bodies.unpack(body, event_id + subject))
        for event_id, kind, subject, body in rows(
            cluster, "SELECT id, type, subject_id, body FROM webhooks_event WHERE type = ANY(%s)", EVENTS
        )
    }
    of_payments = [(kind, payment) for kind in EVENTS[:2] for payment in lives.codes.values()]
    of_refunds = [(EVENTS[2], refund) for refund in lives.refunds.keys() - lives.refunds_in_doubt]
    assert Counter((kind, subject) for kind, subject, _ in stored.values()) == Counter(
        of_payments + of_refunds
    )

    def received() -> dict[str, set[bytes]]:
        bodies: dict[str, set[bytes]] = {}
        for each in endpoint.to("/hook"):
            if each.headers["webhook-id"] in stored:
                bodies.setdefault(each.headers["webhook-id"], set()).add(each.body)
        return bodies

    wait_for_progress(lambda: len(received()), len(stored), SECONDS)
    assert received() == {event_id: {body} for event_id, (_, _, body) in stored.items()}
