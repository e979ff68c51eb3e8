"""`python -m bench.driver ...`: things happen in the instance, by its own functions. Answers in JSON.

A process of its own, with the settings of the instance. Instants are seconds since the epoch, by the clock
that the receiver reads too.
"""

import argparse
import itertools
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

# Standard output is for the answer.
os.environ["LOG_STREAM"] = "stderr"
django.setup()

from django.db import transaction  # noqa: E402

from bench import bare_loop  # noqa: E402
from core import clock, ids  # noqa: E402
from merchants import services  # noqa: E402
from payments.models import Payment, PaymentStatus  # noqa: E402
from payments.shapes import event_data  # noqa: E402
from webhooks import endpoints, events  # noqa: E402
from webhooks.models import Event, EventType  # noqa: E402

# Commits under way at once, so that a slow one does not keep the next from its time.
THREADS = 4
START_DELAY_SECONDS = 0.5
# A statement takes 65,535 parameters.
BATCH_SIZE = 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.driver", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for run, numbers in (
        (register, ()),
        (publish_batch, ("count",)),
        (publish_steadily, ("rate", "seconds")),
        (bare_loop.post_again, ("count",)),
    ):
        command = commands.add_parser(run.__name__)
        command.set_defaults(run=run)
        for name in numbers:
            command.add_argument(name, type=int)
        command.add_argument("names", nargs="+")
    given = vars(parser.parse_args())
    print(json.dumps(given.pop("run")(**given)))


def register(names: list[str]) -> list[str]:
    """A merchant with one endpoint for each URL; their ids."""
    return [_registered(url) for url in names]


def _registered(url: str) -> str:
    now = clock.now()
    merchant, _ = services.create_merchant(name="Bench", mode="test", now=now)
    types = [EventType.PAYMENT_SUCCEEDED, EventType.PAYMENT_FAILED]
    endpoints.store(endpoints.prepare(merchant=merchant, url=url, events=types, now=now))
    return str(merchant.id)


def publish_batch(count: int, names: list[str]) -> dict[str, float]:
    """So many payments of one merchant succeed, told by one commit; the instant before it."""
    result = [_new_event(names[0]) for _ in range(count)]
    with transaction.atomic():
        for start in range(0, count, BATCH_SIZE):
            events.publish_many(result[start : start + BATCH_SIZE])
        return {"at": time.time()}


def publish_steadily(rate: int, seconds: int, names: list[str]) -> dict[str, Any]:
    """Payments of the merchants in turn, each told by a commit of its own, at instants fixed beforehand.

    Gives the instant before the commit for each event, and how late the publications were: an open loop, so
    nothing waits for a delivery.
    """
    start = time.time() + START_DELAY_SECONDS
    due = ((start + n / rate, names[n % len(names)]) for n in range(rate * seconds))
    slots = iter(list(due))
    with ThreadPoolExecutor(THREADS) as pool:
        parts = [part.result() for part in [pool.submit(_publish, slots) for _ in range(THREADS)]]
    committed = {subject: (at, late) for part in parts for subject, at, late in part}
    known = Event.objects.filter(subject_id__in=list(committed)).values_list("id", "subject_id")
    return {
        "committed": {event_id: committed[subject][0] for event_id, subject in known},
        "late": [late for _, late in committed.values()],
    }


def _publish(slots: Iterator[tuple[float, str]]) -> list[tuple[str, float, float]]:
    """Take slot after slot, as several threads may with an iterator over a list."""
    published = []
    for due, merchant_id in slots:
        time.sleep(max(0.0, due - time.time()))
        late, new_event = time.time() - due, _new_event(merchant_id)
        with transaction.atomic():
            events.publish(new_event)
            at = time.time()
        published.append((new_event.subject_id, at, late))
    return published


_numbers = itertools.count(1)


def _new_event(merchant_id: str) -> events.NewEvent:
    now = clock.now()
    payment = Payment(
        id=ids.new("pay_", now),
        qr_code_id=ids.new("qr_", now),
        status=PaymentStatus.SUCCEEDED,
        amount=150_000,
        currency="THB",
        reference=f"order-{next(_numbers)}",
        metadata={"table": 4},
    )
    return events.NewEvent(merchant_id, EventType.PAYMENT_SUCCEEDED, payment.id, event_data(payment), now)


if __name__ == "__main__":
    main()
