"""Record finished requests off their path: a bounded buffer in each process, and a thread that writes it.

A request never waits for the log. If the buffer is full, or the database does not answer, records are dropped
and counted. A killed process loses what it had not written, at most the last second and a bit.
"""

import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import close_old_connections, transaction
from django.http import HttpRequest, HttpResponse

from core import clock, ids, request_context
from core.database import rows
from core.observing import measurements
from core.request_context import RequestContext
from request_log import bodies, redaction
from request_log.models import PAYMENT, PREFIX, Idempotency, RequestRecord, id_of_request

log = logging.getLogger("request_log")
WRITE_SECONDS = 1.0
# What the buffer holds between two writes, and the part of it that one merchant may have.
MAX_RECORDS, MAX_RECORDS_PER_MERCHANT = 2_000, 500
MAX_BYTES, MAX_BYTES_PER_MERCHANT = 8_000_000, 2_000_000
# Bodies are half of the cost. Of each merchant, one write keeps so many, and as many of refused requests.
MAX_BODIES_PER_MERCHANT = 10
# As plain text, which the driver takes faster.
NO_KEY, FIRST, REPLAYED = Idempotency.NONE.value, Idempotency.FIRST.value, Idempotency.REPLAYED.value
_PAYMENT_ID = re.compile(rb'"payment_id"\s*:\s*"(pay_[0-9A-Za-z]{27})"')


class FinishedRequest(NamedTuple):
    """What the writer needs of a request and its response, as it is: the writer masks and formats it.

    Plain values, so that nothing else of the request stays in memory: many live objects would make the
    garbage collector run, which costs more than the log.
    """

    id: str
    merchant_id: str
    began_at: datetime
    duration_ms: int
    context: RequestContext
    request_id: str  # empty if the service made it
    method: str
    route: str
    path: str
    query: str
    payment_id: str | None  # None: the bodies may name it
    idempotency: str
    status: int
    error_code: str
    sent: bytes
    answered: bytes


class Recorder:
    """The buffer of this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with an empty buffer and without a thread."""
        self._changing, self._writing = threading.Lock(), threading.Lock()
        self._records: list[FinishedRequest] = []
        self._used: dict[str, tuple[int, int]] = {}
        self._bytes = 0
        self._writer: threading.Thread | None = None

    def record(self, request: HttpRequest, response: HttpResponse, seconds: float) -> None:
        """Keep a finished request of a merchant for the writer, or count it as dropped."""
        if settings.REQUEST_LOG_RETENTION_DAYS == 0:
            return
        made = _finished(request, response, seconds)
        size = len(made.sent) + len(made.answered)
        with self._changing:
            count, used_bytes = self._used.get(made.merchant_id, (0, 0))
            is_full = (
                count >= MAX_RECORDS_PER_MERCHANT
                or used_bytes + size > MAX_BYTES_PER_MERCHANT
                or len(self._records) >= MAX_RECORDS
                or self._bytes + size > MAX_BYTES
            )
            if not is_full:
                self._used[made.merchant_id] = count + 1, used_bytes + size
                self._bytes += size
                self._records.append(made)
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._run, name="request log", daemon=True)
                self._writer.start()
        if is_full:
            measurements.OF_PROCESS.add(measurements.DROPPED_REQUEST)

    def write(self) -> int:
        """Store what the buffer holds. Returns how many records are stored.

        A process that stops waits here for the write that is under way.
        """
        with self._writing:
            # Requests fill the next buffer while this one is written.
            with self._changing:
                records, self._records, self._used, self._bytes = self._records, [], {}, 0
            if not records:
                return 0
            try:
                # Before the transaction, so that it does not last as long as the masking of bodies.
                made = list(_rows(records))
                with transaction.atomic():
                    rows.copy_values(RequestRecord, COLUMNS, made)
            # No error may end the thread, not even one in the code that masks bodies.
            except Exception as error:
                log.warning("%d requests were not recorded: %s", len(records), type(error).__name__)
                measurements.OF_PROCESS.add(measurements.DROPPED_REQUEST, count=len(records))
                return 0
            return len(records)

    def _run(self) -> None:
        while True:
            time.sleep(WRITE_SECONDS)
            if self._records:
                close_old_connections()
                self.write()


RECORDER = Recorder()
# Web workers are forks. A fork has no thread, a copy of the buffer, and perhaps a lock that nobody releases.
os.register_at_fork(after_in_child=RECORDER.forget)


def _finished(request: HttpRequest, response: HttpResponse, seconds: float) -> FinishedRequest:
    match, headers, idempotency = request.resolver_match, request.META, NO_KEY
    context, duration_ms = request_context.current(), round(seconds * 1000)
    began_at = clock.now() - timedelta(milliseconds=duration_ms)
    is_given = headers.get("HTTP_X_REQUEST_ID") == context.request_id
    own_id = "" if is_given else id_of_request(context.request_id)
    if request.method == "POST" and "HTTP_IDEMPOTENCY_KEY" in headers:
        idempotency = REPLAYED if response.has_header("Idempotent-Replayed") else FIRST
    return FinishedRequest(
        own_id or ids.new(PREFIX, began_at),
        request.merchant_id,  # type: ignore[attr-defined]
        began_at,
        duration_ms,
        context,
        "" if own_id else context.request_id,
        str(request.method),
        match.route if match else "",
        request.path,
        headers.get("QUERY_STRING", ""),
        _payment_id_in_path(request),
        idempotency,
        response.status_code,
        getattr(response, "error_code", ""),
        # The body if a view has read it.
        getattr(request, "_body", b""),
        b"" if response.streaming else response.content,
    )


# In the order of the values of `_rows`.
COLUMNS = (
    "id", "merchant_id", "created_at", "key_id", "method", "route", "path", "status", "error_code",
    "duration_ms", "idempotency", "request_id", "payment_id", "address", "bodies",
)  # fmt: skip


def _rows(records: list[FinishedRequest]) -> Iterator[tuple[Any, ...]]:
    """The values of COLUMNS. Model instances would double the cost of the log.

    Only the first requests and the first refusals of each merchant have bodies.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    for made in records:
        kind = (made.merchant_id, made.status >= 400)
        counts[kind] += 1
        sent, answered = redaction.size_of(made.sent), redaction.size_of(made.answered)
        if counts[kind] <= MAX_BODIES_PER_MERCHANT:
            sent = redaction.body(made.sent, is_ours=False)
            answered = redaction.body(made.answered, is_ours=True)
        context, payment_id = made.context, made.payment_id
        if payment_id is None:
            # The whole body need not be parsed for it.
            found = _PAYMENT_ID.search(made.answered) or _PAYMENT_ID.search(made.sent)
            payment_id = found[1].decode() if found else ""
        route = f"/{made.route}"[:120] if made.route else ""
        yield (
            made.id,
            made.merchant_id,
            made.began_at,
            context.actor.removeprefix("key:")[:16],
            made.method[:8],
            route,
            "" if made.path == route.replace(PAYMENT, payment_id) and not made.query else _path(made),
            made.status,
            made.error_code[:60],
            made.duration_ms,
            made.idempotency,
            made.request_id and redaction.request_id(made.request_id),
            payment_id,
            context.address[:64],
            bodies.pack(sent, answered, payment_id),
        )


def _path(made: FinishedRequest) -> str:
    query = f"?{redaction.query(made.query)}" if made.query else ""
    return f"{_redacted_path(made.path)}{query}"[:500]


# Many requests have the same path.
_redacted_path = lru_cache(maxsize=256)(redaction.path)


def _payment_id_in_path(request: HttpRequest) -> str | None:
    """The payment in the path, or None if the bodies may name one. A list is about no payment."""
    values = request.resolver_match.kwargs if request.resolver_match else {}
    if "payment_id" in values:
        return values["payment_id"] if ids.looks_right(values["payment_id"], "pay_") else ""
    return "" if not values and request.method == "GET" else None
