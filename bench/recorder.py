"""The statements of whole lives, in a process with the settings of the instance and a database of its own.

No worker takes the deliveries there. It runs the code of the web server and of the delivery worker, so the
statements are theirs.
"""

import json
import secrets
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from psycopg.adapt import PyFormat, Transformer

from bench.create_poll import CREATE_PATH, PAYMENTS_PATH
from bench.http import NotMeasurable
from bench.replay import BEGIN, COMMIT, Life, Statement, Value
from config.capacity.load import CODE, NOTIFICATION_PATH, notification
from core import clock, ids
from merchants.models import ApiKey
from webhooks.delivery import attempt_log, dispatcher, queue
from webhooks.delivery.queue import ClaimLimits, Lease
from webhooks.http import event_loop
from webhooks.models import Endpoint

# An endpoint, and the key of its merchant.
Shop = tuple[Endpoint, str]
# Before the recorded life: the webhook is verified, and the use of the key stored for this minute.
EARLIER_LIVES = 2
# As a worker with 96 threads, of which one is free.
ONE_DELIVERY = ClaimLimits(posts=1, slow=48, extra=24, per_merchant=32, slow_per_merchant=12)


class Recording:
    """The statements of this process, with the begin and the end of each transaction."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._is_open = False

    def record(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
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


def recorded_life(shops: list[Shop]) -> Life:
    """The last one of several lives of the first shop. Each other shop has one."""
    for shop in shops[1:]:
        _live(shop, Recording())
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
    endpoint, _ = shop
    key = ApiKey.objects.select_related("merchant").get(merchant_id=endpoint.merchant_id)
    digest, before_endpoint = f"\\x{bytes(key.digest).hex()}", endpoint.id[:-1]
    return [
        *(endpoint.merchant_id, key.merchant.biller_id, key.id, key.public_id, digest),
        *(endpoint.id, before_endpoint),
    ]


def _live(shop: Shop, recording: Recording) -> tuple[list[str], Lease]:
    """One life: the new texts in it, and the delivery that it claimed."""
    endpoint, secret_key = shop
    unique, as_shop = ids.random_text(25), {"Authorization": f"Bearer {secret_key}"}
    with connection.execute_wrapper(recording.record):
        code = _ask("POST", CREATE_PATH, CODE, as_shop | {"Idempotency-Key": unique})
        report, signature = notification(code["qr_data"])
        _ask("POST", NOTIFICATION_PATH, report, signature)
        lease = _claim(endpoint)
        attempt_log.record([event_loop.run(dispatcher.post_delivery(lease, clock.now))])
        _ask("GET", f"{PAYMENTS_PATH}/{code['payment_id']}", {}, as_shop)
    return [report["reference1"], report["slip_reference"], unique], lease


def _claim(endpoint: Endpoint) -> Lease:
    """Claim the delivery of this shop under a lock of its own.

    A worker claims the deliveries of all shops together. The clients of pgbench claim one by one, and would
    wait for each other.
    """
    queue.CLAIM_LOCK_ID, queue.ENDPOINTS_PER_CLAIM = secrets.randbits(60), 1
    # A text without its last character sorts before it.
    (lease,), _ = queue.claim_in_window(endpoint.id[:-1], clock.now(), ONE_DELIVERY)
    return lease


def _ask(method: str, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    response = Client().generic(method, path, json.dumps(body), "application/json", headers=headers)
    if response.status_code != 200:
        raise NotMeasurable(f"{path}: {response.status_code}, {response.content!r}")
    return response.json()
