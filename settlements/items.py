"""What a transfer pays: store its items, settle their payments, and ask about what is not as expected."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from banks import SettledItem as ReportedItem
from core import ids
from ledger import accounts, services as ledger
from ledger.journal_types import JournalType
from ledger.models import Journal
from ledger.services import Fee
from payments import cards, settling
from payments.card_models import OPEN_STATES, CardCharge
from payments.models import Payment
from refunds.models import Refund, RefundStatus
from settlements import questions
from settlements.models import (
    AcquirerTransfer,
    AcquirerTransferState,
    ItemKind,
    QuestionKind,
    SettledItem,
    Settlement,
)
from settlements.shapes import settlement_object
from transfers.models import Transfer
from webhooks import events

log = logging.getLogger("settlements")
# Questions that do not mean that a payment brought another amount.
NO_DIFFERENCE = (QuestionKind.ADJUSTMENT, QuestionKind.LATE)


def store(transfer: AcquirerTransfer, reported: Iterable[ReportedItem], now: datetime) -> None:
    """Store what the transfer pays, each merchant's part of it, and the fees that were not known."""
    reported = _join_adjustments(reported)
    found = settling.find(
        transfer.acquirer,
        [each.order_id for each in reported],
        [each.reference for each in reported if each.kind == "charge"],
    )
    charges = settling.lock([each.pk for each in found])
    by_id = {each.charge_id: each for each in charges.values()} | charges
    refunds = _refunds_of(transfer.acquirer, reported)
    items: dict[tuple[str, str], SettledItem] = {}
    times = Counter[tuple[str, str]]()
    for each in reported:
        refund = refunds.get(each.reference)
        if refund is not None and each.kind == "adjustment" and not _is_returned_fee(refund, each):
            refund = None
        charge = None
        if each.kind == "charge":
            charge = by_id.get(each.order_id) or by_id.get(each.reference)
        item = SettledItem(
            transfer=transfer,
            kind=each.kind,
            reference=each.reference,
            payment=charge.payment if charge else refund.payment if refund else None,
            refund_id=refund.pk if refund else None,
            amount=each.amount,
            fee=each.fee,
            fee_vat=each.fee_vat,
            net_amount=each.net,
            description=each.description[:64],
        )
        key = (each.kind, charge.pk if charge else each.reference)
        times[key] += 1
        if items.setdefault(key, item) is not item:
            _ask(QuestionKind.PAID_TWICE, item, now, payment=item.payment, place=times[key])
    for refund_item in items.values():
        if refund_item.kind == ItemKind.REFUND and refund_item.refund_id:
            _compare_refund(refund_item, refunds[refund_item.reference], now)
    _take(transfer, list(items.values()), charges, now)


def settle_waiting(acquirer: str, *, now: datetime) -> None:
    """Decide the items that waited for the result of their charge or refund, or for a fee."""
    of_charge = Q(payment__charge__state__in=OPEN_STATES) | Q(fee=None, payment__charge__awaits_fee=True)
    is_pending = Exists(Refund.objects.filter(pk=OuterRef("refund_id"), status=RefundStatus.PENDING))
    undecided = Q(kind=ItemKind.CHARGE) & of_charge | Q(is_pending)
    ready = SettledItem.objects.filter(awaits_result=True, transfer__acquirer=acquirer).exclude(undecided)
    for transfer_id in sorted(set(ready.values_list("transfer_id", flat=True))):
        with transaction.atomic():
            transfer = AcquirerTransfer.objects.select_for_update().get(pk=transfer_id)
            items = list(transfer.items.filter(awaits_result=True).select_related("payment"))
            _take(transfer, items, settling.lock([each.payment_id for each in items]), now)
            settle_rest(transfer, now)


def settle_rest(transfer: AcquirerTransfer, now: datetime) -> None:
    """Settle the parts that were found after the transfer arrived. The caller has its lock."""
    if transfer.state == AcquirerTransferState.PAID:
        for part in _settle(transfer, now):
            _book(transfer, part.pk, 0, 0, [part], now)


def _take(
    transfer: AcquirerTransfer, items: list[SettledItem], charges: Mapping[str, CardCharge], now: datetime
) -> None:
    """Save the items. Those of charges that succeeded, with a known fee, become parts of merchants."""
    refunds = Refund.objects.in_bulk([each.refund_id for each in items if each.refund_id])
    parts = defaultdict[str, list[SettledItem]](list)
    # A fee that was not known locks its merchant, and transactions lock merchants in the order of their ids.
    for item in sorted(items, key=lambda each: each.payment.merchant_id if each.payment else ""):
        charge = charges.get(item.payment_id or "") if item.kind == ItemKind.CHARGE else None
        status = refunds[item.refund_id].status if item.refund_id else None
        is_undecided = charge and (charge.is_open or (charge.awaits_fee and item.fee is None))
        item.awaits_result = bool(is_undecided) or status == RefundStatus.PENDING
        if item.awaits_result or status == RefundStatus.COMPLETED:
            continue
        if charge is None or charge.paid_at is None:
            is_adjustment = item.kind == ItemKind.ADJUSTMENT
            _ask(QuestionKind.ADJUSTMENT if is_adjustment else QuestionKind.UNKNOWN_ITEM, item, now)
        elif _is_first(item, charge, now):
            parts[charge.payment.merchant_id].append(item)
    for merchant_id, part in parts.items():
        settlement = _part(transfer, merchant_id, [charges[each.payment_id] for each in part], now)
        for item in part:
            item.settlement = settlement
    SettledItem.objects.bulk_update([each for each in items if each.pk], ["settlement", "awaits_result"])
    SettledItem.objects.bulk_create([each for each in items if not each.pk])


def _join_adjustments(reported: Iterable[ReportedItem]) -> list[ReportedItem]:
    """Those with the same reference are one: a dispute may begin and end in one transfer."""
    joined: dict[object, ReportedItem] = {}
    for number, each in enumerate(reported):
        key = each.reference if each.kind == "adjustment" else number
        earlier = joined.get(key)
        joined[key] = (
            replace(each, amount=earlier.amount + each.amount, net=earlier.net + each.net)
            if earlier
            else each
        )
    return list(joined.values())


def _refunds_of(acquirer: str, reported: Iterable[ReportedItem]) -> dict[str, Refund]:
    """Our refunds by the acquirer's ids of them, without those that ended without success here."""
    references = {each.reference: each.order_id for each in reported if each.kind != "charge"}
    ordered = Transfer.objects.filter(route=accounts.acquirer(acquirer), bank_reference__in=list(references))
    known = {order.bank_reference: order.pk for order in ordered} | {
        reference: order_id for reference, order_id in references.items() if order_id
    }
    counted = Refund.objects.filter(status__in=[RefundStatus.PENDING, RefundStatus.COMPLETED])
    found = counted.select_related("payment").in_bulk(list(known.values()))
    return {reference: found[order_id] for reference, order_id in known.items() if order_id in found}


def _is_returned_fee(refund: Refund, reported: ReportedItem) -> bool:
    """Whether the acquirer gives back exactly the fee of a charge that was refunded as a whole, once."""
    payment = refund.payment
    before = payment.settled_items.filter(kind=ItemKind.ADJUSTMENT, refund_id=refund.pk)
    return (
        refund.status == RefundStatus.COMPLETED
        and refund.amount == payment.received
        and bool(payment.fee)
        and reported.net == (payment.fee or 0) + (payment.fee_vat or 0)
        and not before.exclude(transfer__state=AcquirerTransferState.FAILED).exists()
    )


def _is_first(item: SettledItem, charge: CardCharge, now: datetime) -> bool:
    """Whether no transfer has paid the charge before. Takes its fee if it was not known."""
    payment = charge.payment
    if charge.settled_at is not None or payment.settlement_id is not None:
        _ask(QuestionKind.PAID_TWICE, item, now, payment=payment)
        return False
    if charge.awaits_fee and item.fee is not None and item.fee_vat is not None:
        cards.record_fee(payment, charge, Fee(item.fee, item.fee_vat), now=now)
    if difference := item.net_amount - expected_of(payment):
        _ask(QuestionKind.FEE_DIFFERS, item, now, payment=payment, difference=difference)
    return True


def _compare_refund(item: SettledItem, refund: Refund, now: datetime) -> None:
    """Ask about a refund that a transfer took off before, or of which it takes off another amount."""
    before = SettledItem.objects.filter(payment=refund.payment, refund_id=refund.pk, kind=ItemKind.REFUND)
    if before.exclude(transfer__state=AcquirerTransferState.FAILED).exists():
        _ask(QuestionKind.PAID_TWICE, item, now, payment=refund.payment)
    elif difference := item.net_amount + refund.amount:
        _ask(QuestionKind.FEE_DIFFERS, item, now, payment=refund.payment, difference=difference)


def expected_of(payment: Payment) -> int:
    """Satang that the acquirer should pay, as far as we know its fee."""
    return payment.received if payment.net is None else payment.net


def _ask(
    kind: QuestionKind,
    item: SettledItem,
    now: datetime,
    *,
    payment: Payment | None = None,
    difference: int | None = None,
    place: int = 1,
) -> None:
    """difference: that of the item, if it is not all of it. place: among those that its transfer repeats."""
    net = item.net_amount if difference is None else difference
    subject = item.reference if place == 1 else f"{item.reference} ({place})"
    questions.ask(kind, item.transfer, subject, payment=payment, difference=net, now=now)


def _part(
    transfer: AcquirerTransfer, merchant_id: str, charges: Sequence[CardCharge], now: datetime
) -> Settlement:
    """The settlement of one merchant."""
    settlement = Settlement.objects.create(
        id=ids.new("stl_", now),
        transfer=transfer,
        merchant_id=merchant_id,
        **settling.totals(charges),
        payment_count=len(charges),
        created_at=now,
        expected_at=transfer.expected_at,
    )
    settling.assign(charges, settlement.id)
    return settlement


def arrive(transfer: AcquirerTransfer, arrived_at: datetime, now: datetime) -> None:
    """Book the transfer and settle what it pays."""
    transfer.transition(AcquirerTransferState.PAID, arrived_at=arrived_at)
    late = transfer.questions.filter(kind=QuestionKind.LATE, closed_at=None)
    late.update(closed_at=now, note="It arrived.")
    parts = _settle(transfer, now)
    _book(transfer, transfer.pk, transfer.net_amount, transfer.fee + transfer.fee_vat, parts, now)
    log.info("transfer %s of %s arrived", transfer.transfer_id, transfer.acquirer)


def _settle(transfer: AcquirerTransfer, now: datetime) -> list[Settlement]:
    """Settle the parts of a transfer that arrived, as far as they are not. Returns them."""
    parts = list(transfer.settlements.filter(arrived_at=None).select_related("merchant").order_by("pk"))
    items = SettledItem.objects.filter(settlement__in=parts)
    charges = settling.lock(items.values_list("payment_id", flat=True))
    settling.settle(list(charges.values()), now=now)
    _return_fees(transfer, now)
    questions.close_missing(charges, note=f"{transfer.transfer_id} paid it.", now=now)
    for part in parts:
        part.arrived_at = transfer.arrived_at
        own = Q(payment=None) | Q(payment__merchant=part.merchant)
        unexplained = transfer.questions.filter(own, failed_transfer=None)
        part.differs = unexplained.exclude(kind__in=NO_DIFFERENCE).exists()
        part.save(update_fields=["arrived_at", "differs"])
        shown = settlement_object(part, now)
        events.publish(events.NewEvent(part.merchant_id, "settlement.arrived", part.id, shown, now))
    return parts


def _return_fees(transfer: AcquirerTransfer, now: datetime) -> None:
    """Give merchants the fees that the transfer gives back."""
    returned = transfer.items.filter(kind=ItemKind.ADJUSTMENT, refund_id__isnull=False)
    subjects = list(returned.values_list("refund_id", flat=True))
    posted = Journal.objects.filter(type=JournalType.FEE_RETURNED, subject_id__in=subjects)
    new = returned.exclude(refund_id__in=posted.values("subject_id")).select_related("payment")
    for item in new.order_by("payment__merchant", "pk"):
        payment = item.payment
        assert payment is not None
        assert payment.fee is not None
        ledger.return_fee(
            merchant_id=payment.merchant_id,
            subject_id=str(item.refund_id),
            fee=Fee(payment.fee, payment.fee_vat or 0),
            acquirer=transfer.acquirer,
            now=now,
        )


def _book(
    transfer: AcquirerTransfer,
    subject_id: str,
    received: int,
    cost: int,
    parts: Sequence[Settlement],
    now: datetime,
) -> None:
    """Clear the account of the acquirer by what came, and by the fees of the payments."""
    fee = Fee(sum(each.fee for each in parts), sum(each.fee_vat for each in parts))
    if received or fee.total:
        ledger.receive_transfer(
            subject_id=subject_id, acquirer=transfer.acquirer, received=received, cost=cost, fee=fee, now=now
        )
