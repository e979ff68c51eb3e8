"""What staff are told of things that wait: why each does, and which payment it may be meant for.

A fixed number of statements for any number of things.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from approvals.models import Approval
from core import money
from receipts import nearby, probable_duplicates, sentences
from receipts.models import HELD, Kind, Notice, Outcome, Receipt, Resolution, Return
from receipts.nearby import Near
from refunds.models import Refund
from transfers.models import Contradiction, Transfer

Subject = Receipt | Notice | Refund | Contradiction


@dataclass(frozen=True, slots=True)
class Case:
    """An exception. nearest: only of a receipt, the nearest first.

    same_as: the transaction that an open receipt probably is (see `receipts.probable_duplicates`).
    """

    subject: Subject
    title: str
    sentence: str
    nearest: list[Near] = field(default_factory=list)
    same_as: Receipt | None = None


def of(ids: Sequence[str]) -> dict[str, Case]:
    """By id; without those that nobody knows."""
    cases: dict[str, Case] = {}
    for read in (_receipts, _notices, _refunds, _contradictions):
        cases |= read(ids)
    return cases


def waits(receipt: Receipt) -> bool:
    return receipt.outcome in HELD and receipt.resolution == Resolution.OPEN


def _receipts(ids: Sequence[str]) -> dict[str, Case]:
    found = list(Receipt.objects.filter(pk__in=ids).select_related("payment", "merchant"))
    credited = _credited(receipt.payment_id for receipt in found)
    tried = _tried(ids) | _by_hand(found)
    asked = [*(receipt.id for receipt in found), *(each.id for each in tried.values())]
    waiting = Approval.objects.waiting().filter(subject_id__in=asked)
    held = set(waiting.values_list("subject_id", flat=True))
    nearest = nearby.to([receipt for receipt in found if waits(receipt)])
    same = probable_duplicates.of(found)
    return {
        receipt.id: Case(
            receipt,
            f"{money.display(receipt.amount)} at {receipt.bank}",
            sentences.of_receipt(
                receipt,
                credited.get(receipt.payment_id),
                made := tried.get(receipt.id),
                is_waiting=receipt.id in held or (made is not None and made.id in held),
                same_as=same.get(receipt.id),
            ),
            nearest.get(receipt.id, []),
            same.get(receipt.id),
        )
        for receipt in found
    }


def _credited(payment_ids: Iterable[str | None]) -> dict[str, Receipt]:
    """By what each payment was paid, by the id of the payment."""
    credited = Receipt.objects.credited().filter(payment__in={each for each in payment_ids if each})
    return {receipt.payment_id: receipt for receipt in credited}


def _tried(receipt_ids: Sequence[str]) -> dict[str, Return]:
    """The latest return of each receipt."""
    made = Return.objects.filter(receipt__in=receipt_ids).order_by("created_at", "id")
    return {each.receipt_id: each for each in made}


def _by_hand(receipts: Iterable[Receipt]) -> dict[str, Return]:
    """What staff sent back themselves of the credits of reversals that nothing explains, by the reversal."""
    wanted = {
        (receipt.bank, name): receipt.id
        for receipt in receipts
        if receipt.kind == Kind.REVERSAL and receipt.outcome == Outcome.UNMATCHED
        for name in receipt.names
    }
    names = [name for _, name in wanted]
    made = Return.objects.filter(by_hand=True, receipt__bank_transaction_id__in=names).select_related(
        "receipt"
    )
    credits = ((each, (each.receipt.bank, name)) for each in made for name in each.receipt.names)
    return {wanted[credit]: each for each, credit in credits if credit in wanted}


def _notices(ids: Sequence[str]) -> dict[str, Case]:
    found = Notice.objects.filter(pk__in=ids).select_related("receipt")
    return {
        notice.id: Case(
            notice,
            f"A message of {notice.bank}",
            sentences.of_notice(notice.verdict, notice.receipt, source=notice.source),
        )
        for notice in found
    }


def _refunds(ids: Sequence[str]) -> dict[str, Case]:
    found = list(Refund.objects.filter(pk__in=ids).select_related("merchant", "payment"))
    orders = Transfer.objects.filter(pk__in=[refund.id for refund in found])
    codes = dict(orders.values_list("pk", "failure_code"))
    return {
        refund.id: Case(
            refund,
            f"A refund of {refund.merchant.name}",
            sentences.of_refund(refund.amount, codes.get(refund.id, "")),
        )
        for refund in found
    }


def _contradictions(ids: Sequence[str]) -> dict[str, Case]:
    return {
        found.id: Case(
            found,
            f"{money.display(found.amount)} of {found.subject_id}",
            sentences.of_contradiction(found),
        )
        for found in Contradiction.objects.filter(pk__in=ids)
    }
