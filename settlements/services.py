"""Read the transfers of acquirers, settle the payments that they pay, and ask about what is not as expected.

A transfer is booked when the acquirer says that it arrived: its account is cleared by what came, and by the
fees of the payments. So what stays on the account of an acquirer is on the way, or a question has it.
"""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef

import banks
from banks import (
    AcquirerTransfer as ReportedTransfer,
    InquiryFailed,
    LedgerEntry,
    SettledItem as ReportedItem,
)
from core import ids
from merchants.models import Merchant
from payments import cards, settling
from payments.card_models import IS_ON_THE_WAY, CardCharge
from settlements import items, questions
from settlements.errors import SettlementNotFound
from settlements.models import (
    ARRIVES_WITHIN,
    OPEN_STATES,
    AcquirerReading,
    AcquirerTransfer,
    AcquirerTransferState,
    ItemKind,
    QuestionKind,
    SettledItem,
    Settlement,
    UnpaidEntry,
)

log = logging.getLogger("settlements")
OVERLAP = timedelta(days=1)  # a transfer appears in the acquirer's list a little later than its own time says
# An acquirer pays charges in their order. This is the longest that one may overtake another.
OVERTAKES_WITHIN = timedelta(days=1)
# A transfer that is open for longer is not read any more. Staff know since `ARRIVES_WITHIN` that it is late.
GIVEN_UP_AFTER = timedelta(days=31)
READ_AGAIN_AFTER = timedelta(days=1)


class StoredLedger:
    """A `banks.LedgerCopy`: entries that no transfer has paid. Readers at once keep each entry once."""

    def __init__(self, acquirer: str) -> None:
        self._acquirer = acquirer
        known = AcquirerReading.objects.filter(pk=acquirer)
        self.read_until: datetime | None = known.values_list("ledger_until", flat=True).first()

    @transaction.atomic
    def add(self, entries: Sequence[LedgerEntry], read_until: datetime) -> None:
        reading, _ = AcquirerReading.objects.select_for_update().get_or_create(pk=self._acquirer)
        UnpaidEntry.objects.bulk_create(
            [
                UnpaidEntry(
                    acquirer=self._acquirer,
                    entry_id=each.id,
                    transferable_at=each.transferable_at,
                    item=asdict(each.item),
                )
                for each in entries
            ],
            ignore_conflicts=True,
        )
        self.read_until = reading.ledger_until = max(read_until, reading.ledger_until or read_until)
        reading.save(update_fields=["ledger_until"])

    def entries(self, after: datetime | None, until: datetime) -> list[LedgerEntry]:
        found = UnpaidEntry.objects.filter(acquirer=self._acquirer, transferable_at__lte=until).order_by("pk")
        if after is not None:
            found = found.filter(transferable_at__gt=after)
        return [LedgerEntry(each.entry_id, each.transferable_at, ReportedItem(**each.item)) for each in found]

    def finish(self, now: datetime) -> None:
        """Note that the reading is complete, and delete what transfers that arrived have paid."""
        AcquirerReading.objects.update_or_create(pk=self._acquirer, defaults={"read_at": now})
        paid = AcquirerTransfer.objects.filter(acquirer=self._acquirer, state=AcquirerTransferState.PAID)
        newest = paid.order_by("-created_at").values_list("created_at", flat=True).first()
        if newest is not None:
            UnpaidEntry.objects.filter(acquirer=self._acquirer, transferable_at__lte=newest).delete()


def find(*, merchant: Merchant, settlement_id: str) -> Settlement:
    """Raises SettlementNotFound."""
    return ids.find(settlement_id, "stl_", Settlement.objects.filter(merchant=merchant), SettlementNotFound)


def read_all(*, now: datetime) -> None:
    """Read each acquirer, at least once a day. The first error is raised at the end: none stops the other."""
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
    items.settle_waiting(acquirer, now=now)
    questions.ask_about_fees(acquirer, now=now)
    since = _since(acquirer, now)
    if since is None:
        return 0
    ledger = StoredLedger(acquirer)
    reported = banks.acquirer(acquirer).settlements(since, now, ledger)
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
    ledger.finish(now)
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
    # With nothing on the way: a transfer of adjustments alone.
    was_read = AcquirerReading.objects.filter(pk=acquirer, read_at__gt=now - READ_AGAIN_AFTER).exists()
    return min((each for each in times if each is not None), default=None if was_read else newest)


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
        items.store(transfer, reported.items, now)
        difference = transfer.amount - sum(each.net for each in reported.items)
        if difference and reported.state != "failed":  # one that failed pays nothing
            kind = QuestionKind.AMOUNT_DIFFERS
            questions.ask(kind, transfer, transfer.transfer_id, difference=difference, now=now)
    elif (transfer.amount, transfer.net_amount) != (reported.amount, reported.net):
        difference = reported.net - transfer.net_amount
        questions.ask(QuestionKind.CHANGED, transfer, transfer.transfer_id, difference=difference, now=now)
    return str(transfer.pk)


@transaction.atomic
def _advance(transfer_id: str, reported: ReportedTransfer, now: datetime) -> None:
    """Act on what became of a transfer. In a commit of its own, because a fee that is new moves money too."""
    transfer, state = AcquirerTransfer.objects.select_for_update().get(pk=transfer_id), reported.state
    # A transfer that was sent may be tried again.
    if state in (transfer.state, AcquirerTransferState.PENDING):
        return
    if transfer.state not in OPEN_STATES:
        if state in ("paid", "failed"):
            more = transfer.net_amount if state == "paid" else -transfer.net_amount
            subject = f"{transfer.transfer_id} {state}"  # besides the question about an amount that changed
            questions.ask(QuestionKind.CHANGED, transfer, subject, difference=more, now=now)
        return
    if state == "paid":
        items.arrive(transfer, reported.paid_at or now, now)
        return
    transfer.transition(AcquirerTransferState(state))
    if state == "failed":
        _release(transfer)


def _release(transfer: AcquirerTransfer) -> None:
    """The transfer failed: a later one pays its charges."""
    transfer.items.filter(awaits_result=True).update(awaits_result=False)
    paid = transfer.items.filter(settlement__isnull=False).values_list("payment_id", flat=True)
    settling.assign(list(settling.lock(paid).values()), None)


def _ask_what_is_missing(acquirer: str, now: datetime) -> None:
    """Ask about charges that no transfer pays, while it has paid later ones."""
    paying = Exists(Settlement.objects.filter(transfer=OuterRef("pk")))
    paid = AcquirerTransfer.objects.filter(paying, acquirer=acquirer, state=AcquirerTransferState.PAID)
    newest = paid.order_by("-created_at").first()
    if newest is None:
        return
    # A refund is taken off at once, also of a charge that is too new to be paid.
    items_of = {"payment__settled_items__transfer": newest, "payment__settled_items__kind": ItemKind.CHARGE}
    charges = CardCharge.objects.filter(**items_of)
    last = charges.aggregate(at=Max("paid_at"))["at"]
    items_waiting = SettledItem.objects.filter(kind=ItemKind.CHARGE, awaits_result=True)
    waiting = set(items_waiting.values_list("payment_id", flat=True))
    for charge in settling.on_the_way(acquirer, before=last - OVERTAKES_WITHIN):
        if charge.payment.settlement_id is None and charge.pk not in waiting:
            questions.ask(
                QuestionKind.MISSING,
                None,
                charge.charge_id,
                acquirer=acquirer,
                payment=charge.payment,
                difference=-items.expected_of(charge.payment),
                now=now,
            )
