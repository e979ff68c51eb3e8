"""Whether encrypted columns have the content with which they were stored, by their digests."""

from collections.abc import Iterator

import orjson
from django.apps import apps
from django.db import connection
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from core import vault
from core.clock import iso
from core.digests import DigestedRow
from operations.audit.rules import CREDITED
from payments.models import Payment
from reconciliation.models import BankTransaction
from refunds.models import Refund
from webhooks.models import PING, Event
from withdrawals.models import Withdrawal

CHUNK = 2000
SUBJECT_IDS = ("payment_id", "refund_id", "withdrawal_id", "exception_id")


DESTINATIONS = f"""
    SELECT transfer.id, transfer.bank_code, transfer.account_sealed, approval.account_last4,
        movement.id, movement.payer_bank_code, movement.payer_account_sealed
    FROM transfers_transfer AS transfer
    LEFT JOIN approvals_approval AS approval
        ON approval.subject_id = transfer.id AND approval.kind IN ('refund', 'return')
    LEFT JOIN refunds_refund AS refund ON refund.id = transfer.id
    LEFT JOIN reconciliation_return AS made ON made.id = transfer.id
    LEFT JOIN reconciliation_banktransaction AS movement ON movement.id = coalesce(made.movement_id, (
        SELECT movement.id FROM reconciliation_banktransaction AS movement
        WHERE movement.payment_id = refund.payment_id AND {CREDITED}))
    WHERE purpose <> 'withdrawal' AND transfer.account_sealed <> ''
"""  # noqa: S608


def findings() -> Iterator[tuple[str, str]]:
    """Yield each row whose content is not the one that was stored, in the snapshot of the caller."""
    for model in apps.get_models():
        if issubclass(model, DigestedRow):
            yield from _changed_rows(model)
    yield from _unreported_payers()
    yield from _other_payers()
    yield from _other_destinations()
    yield from _other_messages()


def _changed_rows(model: type[DigestedRow]) -> Iterator[tuple[str, str]]:
    for row in model._base_manager.filter(**{f"{model.DIGESTED.sealed}__gt": ""}).iterator(CHUNK):
        try:
            problem = "" if row.has_its_content() else f"{model.DIGESTED.sealed} has another content"
        except vault.CannotOpen:
            problem = f"{model.DIGESTED.sealed} cannot be decrypted"
        if problem:
            yield f"{model._meta.label} {row.pk}", problem


def _unreported_payers() -> Iterator[tuple[str, str]]:
    """Accounts of payers that no kept message of the bank names. Statement lines have none."""
    named = BankTransaction.objects.filter(payer_account_sealed__gt="").prefetch_related("notifications")
    for movement in named.iterator(CHUNK):
        try:
            account = movement.payer_account.encode()
            bodies = [each.body for each in movement.notifications.all()]
        except vault.CannotOpen:
            continue  # which `_changed_rows` yields
        code = f'"{movement.payer_bank_code}"'.encode() if movement.payer_bank_code else b""
        is_erased = not all(bodies)
        if not is_erased and not all(any(each in body for body in bodies) for each in (account, code)):
            yield movement.pk, "no kept message of the bank names its payer's account and bank"


def _other_payers() -> Iterator[tuple[str, str]]:
    """Copies on payments of another account than the bank reported. A rule compares the other columns."""
    paid = BankTransaction.objects.credited().filter(payment__payer_account_sealed__isnull=False)
    for movement in paid.select_related("payment").iterator(CHUNK):
        payment = movement.payment
        if payment is not None and payment.payer_account != movement.payer_account:
            yield payment.pk, "its payer has another account than its bank transaction"


def _other_destinations() -> Iterator[tuple[str, str]]:
    """Refunds and returns to another account than the approved one or, without an approval, the payer's.

    Rules compare the digests. An erasure empties the accounts, and a void has none.
    """
    with connection.chunked_cursor() as cursor:
        cursor.execute(DESTINATIONS)
        for order_id, bank_code, sealed, approved_last4, movement_id, payer_bank_code, payer_sealed in cursor:
            try:
                account = vault.open_sealed(sealed, context=order_id)
                payer = payer_sealed and vault.open_sealed(payer_sealed, context=movement_id)
            except vault.CannotOpen:
                continue  # reported by `_changed_rows`
            if approved_last4 is None and (bank_code, account) != (payer_bank_code, payer):
                yield order_id, "it goes to another account than the payer's without an approval"
            if approved_last4 not in (None, account[-4:]):
                yield order_id, "its approval shows another account"


def _other_messages() -> Iterator[tuple[str, str]]:
    """Events whose body is not about them: what merchants were sent."""
    amounts = [
        Subquery(model._base_manager.filter(pk=OuterRef("subject_id")).values("amount"))
        for model in (Payment, Refund, Withdrawal)
    ]
    events = Event.objects.exclude(type=PING).annotate(amount=Coalesce(*amounts, None))
    columns = events.values_list("pk", "type", "subject_id", "created_at", "body", "amount")
    for event_id, kind, subject_id, created_at, body, amount in columns.iterator(CHUNK):
        try:
            message = orjson.loads(bytes(body))
            data = message.pop("data")
            subject = data.get("exception", data)
            ids = {subject.get(name) for name in SUBJECT_IDS}
            is_own = message == {"event": kind, "event_id": event_id, "timestamp": iso(created_at)}
            is_own = is_own and subject_id in ids and amount in (None, data["amount"])
        except (ValueError, KeyError, TypeError, AttributeError):
            is_own = False
        if not is_own:
            yield event_id, "its body is not that of this event"
