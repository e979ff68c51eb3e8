"""`python -m bench.recorder COUNT`: the statements of whole lives, one for each of COUNT shops, as JSON.

It is a process with the settings of the instance and a database of its own, where no worker takes the
deliveries. It runs the code of the web server and of the delivery worker, so the statements are theirs.
"""

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import django

# Standard output is for the result.
os.environ["LOG_STREAM"] = "stderr"
django.setup()

from django.conf import settings  # noqa: E402
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from psycopg.adapt import PyFormat, Transformer  # noqa: E402

from bench import driver  # noqa: E402
from bench.deliveries import HOOK, receiver  # noqa: E402
from bench.load import NotMeasurable  # noqa: E402
from bench.replay import BEGIN, COMMIT, Life, Statement, Value  # noqa: E402
from bench.shops import Bank, Request, Shop  # noqa: E402
from core import clock  # noqa: E402
from merchants.models import ApiKey  # noqa: E402
from webhooks.delivery import attempt_log, dispatcher, queue  # noqa: E402
from webhooks.delivery.queue import ClaimLimits, Lease  # noqa: E402
from webhooks.http import event_loop  # noqa: E402

# Before the recorded life: the webhook is verified, and the use of the key stored for this minute.
EARLIER_LIVES = 2
# As a worker with 96 threads, of which one is free.
ONE_DELIVERY = ClaimLimits(posts=1, slow=48, extra=24, per_merchant=32, slow_per_merchant=12)


class Recording:
    """The statements of this process, with the begin and the end of each transaction."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._is_open = False

    @contextmanager
    def running(self) -> Iterator[None]:
        with connection.execute_wrapper(self._record):
            yield

    def _record(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if connection.in_atomic_block and not self._is_open:
            self._is_open = True
            self.statements.append(Statement(BEGIN))
            connection.on_commit(self._end)
        self.statements.append(Statement(sql, _values(params or ())))
        return execute(sql, params, many, context)

    def _end(self) -> None:
        self.statements.append(Statement(COMMIT))
        self._is_open = False


def _values(params: Any) -> list[Value]:
    """The parameters as the driver sends them: as text, each with its type or without."""
    transformer = Transformer(connection.connection)
    texts = transformer.dump_sequence(params, [PyFormat.TEXT] * len(params))
    return [
        Value(None if text is None else bytes(text).decode(), _type_name(oid))
        for text, oid in zip(texts, transformer.types or (), strict=True)
    ]


def _type_name(oid: int) -> str:
    found = connection.connection.adapters.types.get(oid)
    if found is None:
        return ""
    return f"{found.regtype}[]" if oid == found.array_oid else str(found.regtype)


def main(count: int) -> None:
    with receiver(count) as endpoints:
        urls = [endpoints.url(number, HOOK) for number in range(count)]
        shops = [Shop(**shop) for shop in driver.open_shops(urls)]
        for shop in shops[1:]:
            _live(shop, Recording())
        print(json.dumps(asdict(_recorded_life(shops))))


def _recorded_life(shops: list[Shop]) -> Life:
    """The last one of several lives of the first shop."""
    for _ in range(EARLIER_LIVES):
        earlier = Recording()
        _live(shops[0], earlier)
    recording, started_at = Recording(), clock.now()
    names, lease = _live(shops[0], recording)
    return Life(
        statements=recording.statements,
        earlier=earlier.statements,
        names=names,
        started_at=started_at.isoformat(" "),
        lease_id=lease.lease_id.hex,
        shops=[_own_texts(shop) for shop in shops],
    )


def _own_texts(shop: Shop) -> list[str]:
    """What statements of this shop have and others have not."""
    key = ApiKey.objects.select_related("merchant").get(merchant_id=shop.merchant_id)
    digest = f"\\x{bytes(key.digest).hex()}"
    before_endpoint = shop.endpoint_id[:-1]
    return [
        shop.merchant_id,
        key.merchant.biller_id,
        key.id,
        key.public_id,
        digest,
        shop.endpoint_id,
        before_endpoint,
    ]


def _live(shop: Shop, recording: Recording) -> tuple[list[str], Lease]:
    """One life: the new texts in it, and the delivery that it claimed."""
    bank = Bank(settings.SANDBOX_BANK_SECRET.encode())
    with recording.running():
        creation = shop.creation()
        code = _ask(creation)
        notification = bank.notification(code["qr_data"], clock.now())
        _ask(notification)
        lease = _claim(shop)
        attempt_log.record([event_loop.run(dispatcher.post_delivery(lease, clock.now))])
        _ask(shop.poll(code["payment_id"]))
    reported = json.loads(notification.body)
    names = [reported["reference1"], reported["slip_reference"], creation.headers["Idempotency-Key"]]
    return names, lease


def _claim(shop: Shop) -> Lease:
    """Claim the delivery of this shop under a lock of its own.

    A worker claims the deliveries of all shops together. The clients of pgbench claim one by one, and would
    wait for each other.
    """
    queue.CLAIM_LOCK_ID, queue.ENDPOINTS_PER_CLAIM = secrets.randbits(60), 1
    # A text without its last character sorts before it.
    (lease,), _ = queue.claim_in_window(shop.endpoint_id[:-1], clock.now(), ONE_DELIVERY)
    return lease


@lru_cache(maxsize=1)
def _application() -> WSGIHandler:
    return WSGIHandler()


def _ask(request: Request) -> Any:
    made = RequestFactory().generic(request.method, request.path, request.body, "application/json")
    environ, started = made.environ, list[str]()
    for name, value in request.headers.items():
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = value

    def start_response(status: str, headers: Any, error: Any = None) -> Callable[[bytes], object]:
        started.append(status)
        return lambda chunk: None

    response = _application()(environ, start_response)
    body = b"".join(response)
    response.close()
    if started != ["200 OK"]:
        raise NotMeasurable(f"{request.path}: {started}, {body!r}")
    return json.loads(body)


if __name__ == "__main__":
    main(int(sys.argv[1]))
