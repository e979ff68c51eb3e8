"""`python -m bench.driver COMMAND ARGUMENTS`: work in the instance by its own functions. Prints JSON.

It is a process with the settings of the instance. The arguments are a list in JSON. Instants are seconds
since the epoch.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import django

# Standard output is for the result.
os.environ |= {"LOG_STREAM": "stderr", "LOG_LEVEL": "WARNING"}
django.setup()

import requests  # noqa: E402
from django.db import transaction  # noqa: E402

from bench import recorder  # noqa: E402
from bench.replay import Script  # noqa: E402
from config.capacity.load import open_shop  # noqa: E402
from config.celery import app  # noqa: E402
from core import clock, ids  # noqa: E402
from payments.models import Payment, PaymentStatus  # noqa: E402
from payments.shapes import event_data  # noqa: E402
from webhooks import events, signing, wakeup  # noqa: E402
from webhooks.models import Endpoint, Event, EventType  # noqa: E402
from webhooks.sending import USER_AGENT  # noqa: E402

# A statement may have at most 65,535 parameters.
BATCH_SIZE = 1000
BARE_LOOP_THREADS = 32
TIMEOUT = 15.0


def register(url: str) -> str:
    """Create a test merchant with an endpoint at the URL; return its id."""
    return str(open_shop(url)[0].merchant_id)


def publish(count: int, merchant_id: str) -> dict[str, float]:
    """Publish the events of `count` payments of a merchant in one commit; return the instant before it."""
    _wake()  # connects to Redis
    made = [_new_event(merchant_id, number) for number in range(count)]
    with transaction.atomic():
        for start in range(0, count, BATCH_SIZE):
            events.publish_many(made[start : start + BATCH_SIZE])
        at = time.time()
    _wake()
    return {"at": at}


def _wake() -> None:
    """Wake the workers now. A process that ends may do so before its thread for wake-ups sends one."""
    app.send_task(wakeup.TASK, queue=wakeup.QUEUE)


def _new_event(merchant_id: str, number: int) -> events.NewEvent:
    """The event of a new payment that succeeded. The payment itself has no row."""
    now = clock.now()
    payment_id = Payment.new_id(now)
    payment = Payment(
        id=payment_id,
        qr_code_id=ids.of_code(payment_id),
        status=PaymentStatus.SUCCEEDED,
        amount=150_000,
        currency="THB",
        reference=f"order-{number}",
        metadata={"table": 4},
    )
    return events.NewEvent(merchant_id, EventType.PAYMENT_SUCCEEDED, payment.id, event_data(payment), now)


def post(count: int, merchant_id: str, url: str) -> dict[str, float]:
    """The bare loop: 32 threads post the newest messages of a merchant again and store nothing.

    Each has a session of `requests`. Body and headers are those of the service, signed before the start.
    Returns the instant of the start and the processor seconds.
    """
    # The service does not accept compressed answers.
    usual = {"content-type": "application/json", "user-agent": USER_AGENT, "Accept-Encoding": "identity"}
    secrets = Endpoint.objects.get(merchant_id=merchant_id).signing_secrets(clock.now())
    newest = Event.objects.filter(merchant_id=merchant_id).order_by("-pk")[:count]
    messages = iter([(each.body, usual | _signed(each, secrets)) for each in newest])
    with ThreadPoolExecutor(BARE_LOOP_THREADS) as pool:
        started, cpu = time.time(), time.process_time()
        list(pool.map(_post_each, itertools.repeat(url, BARE_LOOP_THREADS), itertools.repeat(messages)))
        return {"at": started, "cpu": time.process_time() - cpu}


def _signed(event: Event, secrets: list[str]) -> dict[str, str]:
    now, body = int(time.time()), event.body
    return signing.headers(secrets=secrets, message_id=event.id, timestamp=now, body=body)


def _post_each(url: str, messages: Iterator[tuple[bytes, dict[str, str]]]) -> None:
    session = requests.Session()
    session.trust_env = False
    session.headers.clear()
    for body, headers in messages:
        session.post(url, body, headers=headers, timeout=TIMEOUT).raise_for_status()


def record(count: int, url: str) -> object:
    """A script of pgbench with the statements of a life, and its variables. Opens so many shops."""
    script = Script(recorder.recorded_life([open_shop(url) for _ in range(count)]))
    return [script.text, script.variables]


COMMANDS = {command.__name__: command for command in (register, publish, post, record)}

if __name__ == "__main__":
    name, given = sys.argv[1:]
    print(json.dumps(COMMANDS[name](*json.loads(given))))
