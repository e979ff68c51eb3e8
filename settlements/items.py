"""What a transfer pays: store its items, settle their payments, and ask about what is not as expected."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import Q

from banks import SettledItem as ReportedItem
from core import ids
from ledger import accounts
from ledger import services as ledger
from ledger.services import Fee
from payments import cards, settling
from payments.card_models import CardCharge
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


def store(transfer: AcquirerTransfer, reported: Sequence[ReportedItem], now: datetime) -> None:
    """Store what the transfer pays, each merchant's part of it, and the fees that were not known."""
    found = settling.find(
        transfer.acquirer,
        [each.order_id for each in reported],
        [each.reference for each in reported if each.kind == "charge"],
    )
    locked = settling.lock([each.pk for each in found])
    by_id = {each.charge_id: each for each in locked.values()} | locked
    # A fee that was not known locks its merchant, and transactions lock merchants in the order of their ids.
    owners = {key: charge.payment.merchant_id for key, charge in by_id.items()}
    reported = sorted(
        _join_adjustments(reported),
        key=lambda each: owners.get(each.order_id) or owners.get(each.reference, ""),
    )
    refunds = _refunds_of(transfer.acquirer, reported)
    items, listed, parts = [], set[tuple[str, str]](), defaultdict[str, list[CardCharge]](list)
    for each in reported:
        refund = refunds.get(each.reference) if each.kind == "refund" else None
        charge = None
        if each.kind == "charge":
            charge = by_id.get(each.order_id) or by_id.get(each.reference)
        key = (each.kind, charge.pk if charge else each.reference)
        if key in listed:
            _ask_about_repeat(transfer, charge.payment if charge else None, each, now)
            continue
        listed.add(key)
        item = SettledItem(
            transfer=transfer,
            kind=each.kind,
            reference=each.reference,
            payment_id=charge.pk if charge else refund.payment_id if refund else None,
            refund_id=refund.pk if refund else None,
            amount=each.amount,
            fee=each.fee,
            fee_vat=each.fee_vat,
            net_amount=each.net,
            description=each.description[:64],
        )
        items.append(item)
        if charge is not None and _is_first(transfer, charge, each, now):
            parts[charge.payment.merchant_id].append(charge)
        elif refund is not None:
            _compare_refund(transfer, refund, each, now)
        elif charge is None:
            kind = QuestionKind.ADJUSTMENT if each.kind == "adjustment" else QuestionKind.UNKNOWN_ITEM
            questions.ask(kind, transfer, each.reference, difference=each.net, now=now)
    paid_by: dict[str, Settlement] = {}
    for merchant_id, part in parts.items():
        paid_by |= dict.fromkeys([each.pk for each in part], _part(transfer, merchant_id, part, now))
    for item in items:
        if item.kind == ItemKind.CHARGE:
            item.settlement = paid_by.pop(item.payment_id, None)
    SettledItem.objects.bulk_create(items)
    if difference := transfer.amount - sum(each.net for each in reported):
        questions.ask(
            QuestionKind.AMOUNT_DIFFERS, transfer, transfer.transfer_id, difference=difference, now=now
        )


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
    references = {each.reference: each.order_id for each in reported if each.kind == "refund"}
    ordered = Transfer.objects.filter(route=accounts.acquirer(acquirer), bank_reference__in=list(references))
    known = {order.bank_reference: order.pk for order in ordered} | {
        reference: order_id for reference, order_id in references.items() if order_id
    }
    counted = Refund.objects.filter(status__in=[RefundStatus.PENDING, RefundStatus.COMPLETED])
    found = counted.select_related("payment").in_bulk(list(known.values()))
    return {reference: found[order_id] for reference, order_id in known.items() if order_id in found}


def _is_first(transfer: AcquirerTransfer, charge: CardCharge, reported: ReportedItem, now: datetime) -> bool:
    """Whether no transfer has paid the charge before. Takes its fee if it was not known."""
    payment = charge.payment
    if charge.settled_at is not None or payment.settlement_id is not None:
        _ask_about_repeat(transfer, payment, reported, now)
        return False
    if charge.awaits_fee and reported.fee is not None and reported.fee_vat is not None:
        cards.record_fee(payment, charge, Fee(reported.fee, reported.fee_vat), now=now)
    ours = expected_of(payment)
    if reported.net != ours:
        questions.ask(
            QuestionKind.FEE_DIFFERS,
            transfer,
            reported.reference,
            payment=payment,
            difference=reported.net - ours,
            now=now,
        )
    return True


def _compare_refund(
    transfer: AcquirerTransfer, refund: Refund, reported: ReportedItem, now: datetime
) -> None:
    """Ask about a refund that a transfer took off before, or of which it takes off another amount."""
    before = SettledItem.objects.filter(payment_id=refund.payment_id, refund_id=refund.pk)
    if before.exclude(transfer__state=AcquirerTransferState.FAILED).exists():
        _ask_about_repeat(transfer, refund.payment, reported, now)
    elif difference := reported.net + refund.amount:
        questions.ask(
            QuestionKind.FEE_DIFFERS,
            transfer,
            reported.reference,
            payment=refund.payment,
            difference=difference,
            now=now,
        )


def expected_of(payment: Payment) -> int:
    """Satang that the acquirer should pay, as far as we know its fee."""
    return payment.received if payment.net is None else payment.net


def _ask_about_repeat(
    transfer: AcquirerTransfer, payment: Payment | None, reported: ReportedItem, now: datetime
) -> None:
    questions.ask(
        QuestionKind.PAID_TWICE,
        transfer,
        reported.reference,
        payment=payment,
        difference=reported.net,
        now=now,
    )


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
    parts = list(transfer.settlements.select_related("merchant").order_by("pk"))
    charges = settling.lock(
        transfer.items.filter(settlement__isnull=False).values_list("payment_id", flat=True)
    )
    settling.settle(list(charges.values()), now=now)
    for part in parts:
        part.arrived_at = arrived_at
        own = Q(payment=None) | Q(payment__merchant=part.merchant)
        part.differs = transfer.questions.filter(own).exclude(kind__in=NO_DIFFERENCE).exists()
        part.save(update_fields=["arrived_at", "differs"])
        event = events.NewEvent(
            part.merchant_id, "settlement.arrived", part.id, settlement_object(part, now), now
        )
        events.publish(event)
    found = settling.totals(list(charges.values()))
    ledger.receive_transfer(
        subject_id=transfer.pk,
        acquirer=transfer.acquirer,
        received=transfer.net_amount,
        cost=transfer.fee + transfer.fee_vat,
        fee=Fee(found["fee"], found["fee_vat"]),
        now=now,
    )
    log.info("transfer %s of %s arrived: %s payments", transfer.transfer_id, transfer.acquirer, len(charges))
