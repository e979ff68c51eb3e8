"""Write a merchant's rows to a file, from one snapshot, and leave the books to the instance that imports it.

From the first commit on nothing is credited and nothing is sent for the merchant here: triggers refuse it
(`merchants/sql/rules.sql`). Transactions that began before are awaited, so the snapshot has all of them.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from datetime import datetime
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from typing import Any

import orjson
from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from audit_trail.acts import Act
from audit_trail.recording import recorded
from audit_trail.values import Values
from core import vault
from core.database import rows
from core.database.columns import PublicId
from core.deadlines import Deadline
from ledger import accounts, queries as ledger
from merchants.models import Merchant
from operations.audit import runner
from operations.audit.daily_close import signing
from operations.moving import tables
from operations.moving.file import Unusable, Writer
from payments.card_models import IS_ON_THE_WAY, IS_OPEN, CardCharge
from reconciliation.models import BankTransaction
from settlements.models import SettledItem
from transfers import safe_mode
from transfers.models import UNFINISHED_STATES, Transfer, TransferState
from webhooks.models import DeliveryLease, DisabledReason, Endpoint, EndpointStatus

CHUNK = 1000
# How long transactions and webhooks that began before the move are awaited.
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.05
# The ids of all rows so far that move.
MOVED = 'SELECT id COLLATE "C" FROM moved'
INSERT = "INSERT INTO moved SELECT * FROM ({}) AS found (id) WHERE id > '' ON CONFLICT DO NOTHING"
# Each transaction has a lock of its own, which everybody can see.
TRANSACTIONS = """
SELECT coalesce(array_agg(virtualxid), '{}') FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'virtualxid' AND datname = current_database() AND pid <> pg_backend_pid()
"""
NEWEST = """
SELECT count(*) + coalesce((
    SELECT first_sequence + cardinality(event_ids) - 1 FROM webhooks_feedblock WHERE merchant_id = %(id)s
    ORDER BY first_sequence DESC LIMIT 1
), 0) FROM webhooks_unnumberedevent WHERE merchant_id = %(id)s
"""


def export(merchant_id: str, path: Path, *, now: datetime) -> tuple[str, str]:
    """Write the file; return its key and its SHA-256. A merchant that has moved already is written again.

    Raises Merchant.DoesNotExist, Unusable, OSError; then the merchant stays as it was.
    """
    if safe_mode.is_on():  # the other instance would not know that orders may be missing
        raise Unusable("Safe mode is on. Compare the orders with the banks first, and end it.")
    key, is_new = vault.new_key(), leave(merchant_id, now=now)
    try:
        path.touch(0o600, exist_ok=False)
        with path.open("wb") as file:
            _wait_for_others(merchant_id)
            with runner.snapshot(writes=True):
                _write(Writer(file, key), Merchant.objects.get(pk=merchant_id))
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        if is_new:
            stay(merchant_id)
        if not isinstance(error, FileExistsError):
            path.unlink(missing_ok=True)
        raise
    return key, digest(path)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@transaction.atomic
def leave(merchant_id: str, *, now: datetime) -> bool:
    """Another instance gets the books: nothing changes here. Returns False if it had left before."""
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    if merchant.moved_at is not None:
        return False
    with recorded(Act.MERCHANT_MOVED, merchant):
        since = merchant.suspended_at or now
        Merchant.objects.filter(pk=merchant_id).update(moved_at=now, suspended_at=since)
    active = Endpoint.objects.filter(merchant=merchant, status=EndpointStatus.ACTIVE)
    active.update(status=EndpointStatus.DISABLED, disabled_reason=DisabledReason.MOVED)
    return True


@transaction.atomic
def stay(merchant_id: str, act: Act = Act.MOVE_CANCELED, details: Values | None = None) -> None:
    """This instance has the books. A suspension that came with the move ends with it."""
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    if merchant.moved_at is None:
        raise Unusable(f"{merchant_id} has not moved.")
    with recorded(act, merchant) as recording:
        recording.details = details or {}
        kept = merchant.suspended_at if merchant.suspended_at != merchant.moved_at else None
        Merchant.objects.filter(pk=merchant_id).update(moved_at=None, suspended_at=kept)
    moved = Endpoint.objects.filter(merchant=merchant, disabled_reason=DisabledReason.MOVED)
    moved.update(status=EndpointStatus.ACTIVE, disabled_reason="")


def _wait_for_others(merchant_id: str) -> None:
    """Until all transactions and webhooks that may not know of the move have ended. Raises Unusable."""
    before, deadline = set(rows.run(TRANSACTIONS, []).fetchone()[0]), Deadline.after(PATIENCE_SECONDS)
    endpoints = Endpoint.objects.filter(merchant=merchant_id).values("pk")
    while before & set(rows.run(TRANSACTIONS, []).fetchone()[0]) or (
        DeliveryLease.objects.filter(endpoint_id__in=endpoints).exists()
    ):
        if deadline.is_past:
            raise Unusable("A transaction or a webhook does not end. Run it again later.")
        time.sleep(POLL_SECONDS)


def _write(writer: Writer, merchant: Merchant) -> None:
    """The schema, the rows, and what the import must find. Raises Unusable."""
    if unfinished := list(islice(_unfinished(merchant), 20)):
        raise Unusable(f"Not finished: {', '.join(unfinished)}. Run it again when they have ended.")
    writer.write({"merchant_id": merchant.pk, "tables": tables.schema()})
    counts = {found.model._meta.label_lower: _write_table(writer, found) for found in walk(merchant.pk)}
    manifest = {"merchant_id": merchant.pk, "rows": counts, **books(merchant.pk)}
    text, has_key = orjson.dumps(manifest).decode(), bool(settings.CLOSE_SIGNING_KEY)
    signed = [signing.sign(text), signing.public_key()] if has_key else None
    writer.write({"manifest": text, "signed": signed})


def _unfinished(merchant: Merchant) -> Iterator[str]:
    """What a bank or an acquirer may still end here, and what is of other merchants too."""
    orders = Transfer.objects.filter(merchant_id=merchant.pk)
    at_bank = Q(state=TransferState.SUBMITTED) | Q(purpose="return", state__in=UNFINISHED_STATES)
    yield from orders.filter(at_bank).order_by("pk").values_list("pk", flat=True)
    unpaid = CardCharge.objects.filter(IS_OPEN | IS_ON_THE_WAY, payment__merchant=merchant)
    yield from unpaid.order_by("pk").values_list("pk", flat=True)
    paid = SettledItem.objects.filter(settlement__merchant=merchant).values("transfer")
    settled = SettledItem.objects.filter(transfer__in=paid, settlement__isnull=False)
    others = settled.exclude(settlement__merchant=merchant)
    for transfer_id in others.values_list("transfer", flat=True).distinct():
        yield f"{transfer_id} (it pays other merchants too)"


def walk(merchant_id: str) -> Iterator[QuerySet[Any]]:
    """The rows of the merchant, table by table. The caller opens the transaction."""
    rows.run('CREATE TEMPORARY TABLE moved (id text COLLATE "C" PRIMARY KEY) ON COMMIT DROP', [])
    rows.run("INSERT INTO moved VALUES (%s)", [merchant_id])
    for label, paths in tables.MOVES.items():
        model = apps.get_model(label)
        conditions = [Q(**{f"{path}__in": RawSQL(MOVED, [])}) for path in paths]  # noqa: S611
        if model is BankTransaction:  # unknown money that came to its biller ids
            terms = Merchant.objects.get(pk=merchant_id).all_terms
            conditions += [Q(merchant=None, bank=each.bank, biller_id=each.biller_id) for each in terms]
        found = model._base_manager.filter(reduce(or_, conditions))
        if label in tables.LEFT_OUT:
            found = found.exclude(**tables.LEFT_OUT[label])
        own = [model._meta.pk.attname] if isinstance(model._meta.pk, PublicId) else []
        for column in [*own, *tables.NAMED.get(label, [])]:
            sql, values = found.values_list(Cast(column, TextField())).query.sql_with_params()
            rows.run(INSERT.format(sql), values)
        yield found


def _write_table(writer: Writer, found: QuerySet[Any]) -> int:
    count, columns = 0, tables.columns(found.model)
    texts = found.order_by("pk").values_list(*(Cast(F(each.attname), TextField()) for each in columns))
    iterator = texts.iterator(CHUNK)
    sealed = [place for place, each in enumerate(columns) if each.column.endswith("_sealed")]
    while chunk := [list(row) for row in islice(iterator, CHUNK)]:
        for row in chunk:
            for place in sealed:
                row[place] = resealed(row[place], [writer.key, *settings.FIELD_ENCRYPTION_KEYS])
        writer.write({"table": found.model._meta.label_lower, "rows": chunk})
        count += len(chunk)
    return count


def resealed(token: str | None, keys: list[str]) -> str | None:
    """The token, sealed with the first of the keys. Bytes are as PostgreSQL writes them. Raises Unusable."""
    try:
        if token and token.startswith("\\x"):
            raw = bytes.fromhex(token[2:])
            return f"\\x{vault.reseal(raw, keys=keys).hex()}" if raw else token
        return vault.reseal(token, keys=keys) if token else token
    except vault.CannotOpen:
        raise Unusable("No key of FIELD_ENCRYPTION_KEYS opens what is stored. Run the audit first.") from None


def books(merchant_id: str) -> dict[str, Any]:
    """What must be the same after the move: the balances, and the newest sequence of the feed."""
    codes = accounts.of_merchant(merchant_id)
    balances = dict.fromkeys(codes, 0) | ledger.read_balances(codes, None)
    return {"balances": balances, "sequence": rows.run(NEWEST, {"id": merchant_id}).fetchone()[0]}
