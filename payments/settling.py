"""Card payments that an acquirer pays to us. The caller opens the transaction."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.db.models import Q

from ledger import services as ledger
from payments.card_models import IS_ON_THE_WAY, IS_OPEN, CardCharge
from payments.models import Payment


def lock(payment_ids: Collection[str]) -> dict[str, CardCharge]:
    """Lock card payments, and then their charges, each in the order of their ids. Charges by payment."""
    payments = Payment.objects.filter(pk__in=payment_ids).select_related("merchant").order_by("pk")
    locked = {each.pk: each for each in payments.select_for_update(of=["self"], no_key=True)}
    charges = CardCharge.objects.filter(pk__in=list(locked)).order_by("pk").select_for_update()
    for charge in charges:
        charge.payment = locked[charge.pk]
    return {each.pk: each for each in charges}


def find(acquirer: str, order_ids: Collection[str], charge_ids: Collection[str]) -> list[CardCharge]:
    """The charges with these ids of ours or of the acquirer, without those that failed here."""
    wanted = Q(pk__in=order_ids) | Q(charge_id__in=[each for each in charge_ids if each])
    may_be_paid = IS_OPEN | Q(paid_at__isnull=False)
    return list(CardCharge.objects.filter(wanted, may_be_paid, acquirer=acquirer))


def on_the_way(acquirer: str, *, before: datetime) -> list[CardCharge]:
    """Charges that the acquirer has not paid to us, of those that were paid before; the oldest first."""
    found = CardCharge.objects.filter(IS_ON_THE_WAY, acquirer=acquirer, paid_at__lt=before)
    return list(found.select_related("payment").order_by("paid_at")[:1000])


def assign(charges: Sequence[CardCharge], settlement_id: str | None) -> None:
    """Show with these payments which settlement pays them."""
    Payment.objects.filter(pk__in=[each.pk for each in charges]).update(settlement_id=settlement_id)


def settle(charges: Sequence[CardCharge], *, now: datetime) -> None:
    """Make the money of these charges available: the acquirer has paid them. The caller holds their locks."""
    amounts: dict[str, dict[str, int]] = {}
    for each in charges:
        if each.unsettled:
            amounts.setdefault(each.payment.merchant_id, {})[each.pk] = each.unsettled
    CardCharge.objects.filter(pk__in=[each.pk for each in charges]).update(unsettled=None, settled_at=now)
    for merchant_id in sorted(amounts):
        ledger.settle(merchant_id=merchant_id, amounts=amounts[merchant_id], now=now)


def totals(charges: Sequence[CardCharge]) -> Mapping[str, int]:
    """Satang received by these payments, their fees and the VAT of these."""
    payments = [each.payment for each in charges]
    return {
        "gross_amount": sum(each.received for each in payments),
        "fee": sum(each.fee or 0 for each in payments),
        "fee_vat": sum(each.fee_vat or 0 for each in payments),
    }
