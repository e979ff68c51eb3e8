"""Read the transfers of acquirers, settle the payments that they pay, and ask about what is not as expected.

A transfer is booked when the acquirer says that it arrived: its account is cleared by what came, and by the
fees of the payments. So what stays on the account of an acquirer is on the way, or a question has it.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef, Q

import banks
from banks import AcquirerTransfer as ReportedTransfer
from banks import InquiryFailed
from banks import SettledItem as ReportedItem
from core import ids
from ledger import accounts
from ledger import services as ledger
from ledger.services import Fee
from merchants.models import Merchant
from payments import cards, settling
from payments.card_models import IS_ON_THE_WAY, CardCharge
from payments.models import Payment
from refunds.models import Refund, RefundStatus
from settlements import questions
from settlements.errors import SettlementNotFound
from settlements.models import (
    ARRIVES_WITHIN,
    OPEN_STATES,
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
# A transfer appears in the acquirer's list a little later than its own time says.
OVERLAP = timedelta(days=1)
# Questions that do not mean that a payment brought another amount.
NO_DIFFERENCE = (QuestionKind.ADJUSTMENT, QuestionKind.LATE)
# An acquirer pays charges in their order. This is the longest that one may overtake another.
OVERTAKES_WITHIN = timedelta(days=1)
# A transfer that is open for longer is not read any more. Staff know since `ARRIVES_WITHIN` that it is late.
GIVEN_UP_AFTER = timedelta(days=31)


def find(*, merchant: Merchant, settlement_id: str) -> Settlement:
    """Raises SettlementNotFound."""
    found = Settlement.objects.filter(pk=settlement_id, merchant=merchant)
    return ids.find(settlement_id, "stl_", found.first, SettlementNotFound)


def read_all(*, now: datetime) -> None:
    """Read what each acquirer has transferred, as far as something is on the way.

    Raises the first error at its end: no acquirer stops the other.
    """
    errors = []
    for acquirer in sorted(set(cards.ACQUIRERS.values())):
        try:
            read(acquirer, now=now)
        except banks.UnknownBank:
            continue  # it is not set up
        except InquiryFailed as failure:
            log.warning("transfers of %s could not be read: %s", acquirer, failure)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


def read(acquirer: str, *, now: datetime) -> int:
    """Store new transfers of the acquirer, and what became of those that are open. Returns how many.

    Raises InquiryFailed, banks.UnknownBank, and at its end the first error of a transfer: the next run tries
    that again. It may run at the same time as another: each transfer is locked.
    """
    since = _since(acquirer, now)
    if since is None:
        return 0
    reported = banks.acquirer(acquirer).settlements(since, now)
    errors = []
    for each in reported:
        try:
            _advance(_store(acquirer, each, now), each, now)
        # It must not stop the others: each waits for its own money.
        except Exception as error:
            log.exception("transfer %s of %s could not be applied", each.id, acquirer)
            errors.append(error)
    questions.ask_what_is_late(acquirer, now=now)
    _ask_what_is_missing(acquirer, now)
    if errors:
        raise errors[0]
    return len(reported)


def _since(acquirer: str, now: datetime) -> datetime | None:
    """From when on the acquirer is asked: the oldest open transfer, or the oldest charge on the way."""
    transfers = AcquirerTransfer.objects.filter(acquirer=acquirer)
    newest = transfers.aggregate(at=Max("created_at"))["at"]
    charge = CardCharge.objects.filter(IS_ON_THE_WAY, acquirer=acquirer).aggregate(at=Min("paid_at"))["at"]
    if charge is not None and newest is not None:
        # What is missing for long is not searched again and again.
        charge = max(charge, newest - ARRIVES_WITHIN - OVERLAP)
    open_ones = transfers.open().filter(created_at__gte=now - GIVEN_UP_AFTER)
    times = [charge, open_ones.aggregate(at=Min("created_at"))["at"]]
    return min((each for each in times if each is not None), default=None)


@transaction.atomic
def _store(acquirer: str, reported: ReportedTransfer, now: datetime) -> str:
    """Store a transfer and what it pays, once. Returns its id."""
    transfer, is_new = AcquirerTransfer.objects.get_or_create(
        acquirer=acquirer,
        transfer_id=reported.id,
        defaults={
            "id": AcquirerTransfer.new_id(now),
            "amount": reported.amount,
            "fee": reported.fee,
            "fee_vat": reported.fee_vat,
            "net_amount": reported.net,
            "state": AcquirerTransferState.PENDING,
            "created_at": reported.created_at,
        },
    )
    if is_new:
        _store_items(transfer, reported.items, now)
    elif (transfer.amount, transfer.net_amount) != (reported.amount, reported.net):
        difference = reported.net - transfer.net_amount
        questions.ask(QuestionKind.CHANGED, transfer, transfer.transfer_id, difference=difference, now=now)
    return str(transfer.pk)


@transaction.atomic
def _advance(transfer_id: str, reported: ReportedTransfer, now: datetime) -> None:
    """Act on what became of a transfer. In a commit of its own, because a fee that is new moves money too."""
    transfer, state = AcquirerTransfer.objects.select_for_update().get(pk=transfer_id), reported.state
    if state in (
        transfer.state,
        AcquirerTransferState.PENDING,
    ):  # a transfer that was sent may be tried again
        return
    if transfer.state not in OPEN_STATES:
        if state in ("paid", "failed"):
            more = transfer.net_amount if state == "paid" else -transfer.net_amount
            questions.ask(QuestionKind.CHANGED, transfer, transfer.transfer_id, difference=more, now=now)
        return
    if state == "paid":
        _arrive(transfer, reported.paid_at or now, now)
        return
    transfer.transition(AcquirerTransferState(state))
    if state == "failed":
        _release(transfer)


def _store_items(transfer: AcquirerTransfer, reported: Sequence[ReportedItem], now: datetime) -> None:
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
    ours = _expected_of(payment)
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


def _expected_of(payment: Payment) -> int:
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


def _arrive(transfer: AcquirerTransfer, arrived_at: datetime, now: datetime) -> None:
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


def _release(transfer: AcquirerTransfer) -> None:
    """The transfer failed: a later one pays its charges."""
    items = transfer.items.filter(settlement__isnull=False).values_list("payment_id", flat=True)
    settling.assign(list(settling.lock(items).values()), None)


def _ask_what_is_missing(acquirer: str, now: datetime) -> None:
    """Ask about charges that no transfer pays, while it has paid later ones."""
    paying = Exists(Settlement.objects.filter(transfer=OuterRef("pk")))
    paid = AcquirerTransfer.objects.filter(paying, acquirer=acquirer, state=AcquirerTransferState.PAID)
    newest = paid.order_by("-created_at").first()
    if newest is None:
        return
    charges = CardCharge.objects.filter(payment__settled_items__transfer=newest)
    last = charges.aggregate(at=Max("paid_at"))["at"]
    for charge in settling.on_the_way(acquirer, before=last - OVERTAKES_WITHIN):
        if charge.payment.settlement_id is None:
            questions.ask(
                QuestionKind.MISSING,
                None,
                charge.charge_id,
                acquirer=acquirer,
                payment=charge.payment,
                difference=-_expected_of(charge.payment),
                now=now,
            )
