"""Whether encrypted columns have the content with which they were stored, by their digests."""

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson
from django.apps import apps
from django.db import connection
from django.db.models import QuerySet

from core import vault
from core.clock import iso
from core.database import rows
from core.digests import DigestedRow
from operations.audit.rules import CREDITED
from payments.models import HOLD_OF, PayerMatch, Payment, PaymentException
from payments.shapes import event_data
from reconciliation.models import BankTransaction
from refunds.models import Refund
from refunds.shapes import refund_object
from settlements.models import Settlement
from settlements.shapes import settlement_object
from webhooks import bodies
from webhooks.models import DESTINATION_PING, PING, Event
from withdrawals.models import Withdrawal
from withdrawals.shapes import withdrawal_object

CHUNK = 2000
SUBJECT_IDS = ("payment_id", "refund_id", "withdrawal_id", "exception_id", "settlement_id")


# All columns of payments would take most of the time.
PAYMENT_COLUMNS = (
    "status", "amount", "currency", "qr_code_id", "reference", "metadata", "failure_code", "amount_received",
    "fee", "fee_vat", "payment_link_id", "payer_matches", "hold",
)  # fmt: skip
# The data of events. An exception is compared with its payment.
DATA_OF: list[tuple[QuerySet[Any], Callable[[Any], Mapping[str, Any]]]] = [
    (Payment.objects.only(*PAYMENT_COLUMNS), event_data),
    (PaymentException.objects.select_related("payment"), lambda exception: event_data(exception.payment)),
    (Refund.objects.all(), refund_object),
    (Withdrawal.objects.all(), withdrawal_object),
    # A settlement that arrived does not change with the time.
    (
        Settlement.objects.select_related("transfer"),
        lambda settlement: settlement_object(settlement, settlement.expected_at),
    ),
]
# What an object may have changed since. The note of a refund is erased with its payer.
CHANGING = {
    "status", "awaiting_approval", "pending_reason", "updated_at", "note", "bank_name", "payer_matches",
    "hold",
}  # fmt: skip
# What never changes once the object has the status of the event.
FINAL = {"failure_code", "completed_at", "bank_reference", "amount_received"}
# What a later event may be the first to have.
LATER = {"fee", "fee_vat", "net"}
# The statuses in an event, if they are not its name. Payments that expire fail, depending on a setting.
STATUSES = {
    "withdrawal.processed": {"processing"},
    "payment.failed": {"failed", "expired"},
    "payment.fee_known": {"succeeded", "refunded"},
    "payment.hold_lifted": {"succeeded"},
    "settlement.arrived": {"arrived", "differs"},
}
FEES_BEFORE = """
SELECT payment.id, coalesce(amount_received, payment.amount), (fee - coalesce(sum(entry.amount)
    FILTER (WHERE starts_with(account_id, 'fees:')), 0))::bigint, (fee_vat - coalesce(sum(entry.amount)
    FILTER (WHERE starts_with(account_id, 'fee_vat:')), 0))::bigint
FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
JOIN payments_payment AS payment ON payment.id = subject_id
WHERE subject_id = ANY(%s) AND type IN ('fee_added', 'fee_returned') GROUP BY payment.id
"""
DESTINATIONS = f"""
    SELECT transfer.id, transfer.bank_code, transfer.account_sealed, approval.account_last4,
        bank_transaction.id, bank_transaction.payer_bank_code, bank_transaction.payer_account_sealed
    FROM transfers_transfer AS transfer
    LEFT JOIN approvals_approval AS approval
        ON approval.subject_id = transfer.id AND approval.kind IN ('refund', 'return')
    LEFT JOIN refunds_refund AS refund ON refund.id = transfer.id
    LEFT JOIN reconciliation_return AS made ON made.id = transfer.id
    LEFT JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id =
    coalesce(made.bank_transaction_id, (
        SELECT bank_transaction.id FROM reconciliation_banktransaction AS bank_transaction
        WHERE bank_transaction.payment_id = refund.payment_id AND {CREDITED}))
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
    for bank_transaction in named.iterator(CHUNK):
        try:
            account = bank_transaction.payer_account.encode()
            bodies = [each.body for each in bank_transaction.notifications.all()]
        except vault.CannotOpen:
            continue  # which `_changed_rows` yields
        code = f'"{bank_transaction.payer_bank_code}"'.encode() if bank_transaction.payer_bank_code else b""
        is_erased = not all(bodies)
        if not is_erased and not all(any(each in body for body in bodies) for each in (account, code)):
            yield bank_transaction.pk, "no kept message of the bank names its payer's account and bank"


def _other_payers() -> Iterator[tuple[str, str]]:
    """Copies on payments of another account than the bank reported. A rule compares the other columns."""
    paid = BankTransaction.objects.credited().filter(payment__payer_account_sealed__isnull=False)
    for bank_transaction in paid.select_related("payment").iterator(CHUNK):
        payment = bank_transaction.payment
        try:
            if payment is not None and payment.payer_account != bank_transaction.payer_account:
                yield payment.pk, "its payer has another account than its bank transaction"
        except vault.CannotOpen:
            yield bank_transaction.payment_id, "the account of its payer cannot be decrypted"


def _other_destinations() -> Iterator[tuple[str, str]]:
    """Refunds and returns to another account than the approved one or, without an approval, the payer's.

    Rules compare the digests. An erasure empties the accounts, and a void has none.
    """
    with connection.chunked_cursor() as cursor:
        cursor.execute(DESTINATIONS)
        for order_id, bank_code, sealed, approved_last4, money_id, payer_bank, payer_sealed in cursor:
            try:
                account = vault.open_sealed(sealed, context=order_id)
                payer = payer_sealed and vault.open_sealed(payer_sealed, context=money_id)
            except vault.CannotOpen:
                continue  # reported by `_changed_rows`
            if approved_last4 is None and (bank_code, account) != (payer_bank, payer):
                yield order_id, "it goes to another account than the payer's without an approval"
            if approved_last4 not in (None, account[-4:]):
                yield order_id, "its approval shows another account"


def _other_messages() -> Iterator[tuple[str, str]]:
    """Events whose body is not about them: what merchants were sent."""
    columns = ("pk", "type", "subject_id", "created_at", "packed_body")
    sent = Event.objects.filter(merchant__isnull=False).exclude(type__in=[PING, DESTINATION_PING])
    events = sent.values_list(*columns).iterator(CHUNK)
    while some := list(islice(events, CHUNK)):
        ids_of_subjects = {subject_id for _id, _type, subject_id, *_ in some}
        subjects: dict[str, Mapping[str, Any]] = {}  # `data` of an event about each of them, as it is now
        for kept, data_of in DATA_OF:
            subjects |= {pk: data_of(row) for pk, row in kept.in_bulk(ids_of_subjects).items()}
        before = _fees_before(ids_of_subjects)
        for event_id, kind, subject_id, created_at, packed in some:
            try:
                message = orjson.loads(bodies.unpack(bytes(packed), event_id + subject_id))
                data = message.pop("data")
                ids = {data.get("exception", data).get(name) for name in SUBJECT_IDS}
                is_own = message == {"event": kind, "event_id": event_id, "timestamp": iso(created_at)}
                now = subjects.get(subject_id)
                fees = [each for each in (now, before.get(subject_id)) if each is not None]
                is_own = is_own and subject_id in ids and _is_about(data, now, kind, fees)
            except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
                is_own = False
            if not is_own:
                yield event_id, "its body is not that of this event"


def _fees_before(payment_ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """What events said of payments before a statement changed their fees."""
    return {
        payment_id: {"fee": fee, "fee_vat": vat, "net": received - fee - vat}
        for payment_id, received, fee, vat in rows.run(FEES_BEFORE, [list(payment_ids)]).fetchall()
    }


def _is_about(
    data: dict[str, Any], now: Mapping[str, Any] | None, kind: str, fees: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether the data has what the object still has. now: None for an object that rules miss.

    fees: the object as it is and as it was, if its fee has changed.
    """
    if now is None:
        return True
    state = kind.rpartition(".")[2]
    is_as_now = data["status"] == now["status"] and not state.startswith("exception")
    names = (now.keys() | FINAL) - CHANGING - LATER - (set() if is_as_now else FINAL)
    return (
        all(data.get(name) == now.get(name) for name in names)
        and any(all(data.get(name) in (None, each.get(name)) for name in LATER) for each in fees)
        and (state.startswith("exception") or data["status"] in STATUSES.get(kind, {state}))
        and data.get("hold") in (None, HOLD_OF.get(data.get("payer_matches", "")))
        and data.get("payer_matches") in (None, PayerMatch.UNKNOWN, now.get("payer_matches"))
        and (is_as_now or data["failure_code"] in (None, now["failure_code"]))
    )
