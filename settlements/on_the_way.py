"""What acquirers owe us: what they took from payers and have not transferred.

The oldest MAX_PAYMENTS are added up: these take half a second.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Min, Sum
from django.db.models.functions import Coalesce

from ledger import accounts, queries
from payments.card_models import IS_ON_THE_WAY, CardCharge

MAX_PAYMENTS = 50_000


@dataclass(frozen=True, slots=True)
class OnTheWay:
    """Card payments that an acquirer has not paid. Amounts are satang, without fees that it has not said."""

    acquirer: str
    payments: int
    since: datetime | None  # the time of the oldest
    gross: int
    fee: int
    fee_vat: int
    other: int  # what refunds took off and open questions left on the account, negative if we owe it

    @property
    def net(self) -> int:
        return self.gross - self.fee - self.fee_vat + self.other

    @property
    def is_more(self) -> bool:
        """Whether there are more payments than these."""
        return self.payments == MAX_PAYMENTS


def read(acquirer: str) -> OnTheWay:
    """By two statements. They read what is on the way, not the history."""
    charges = CardCharge.objects.filter(IS_ON_THE_WAY, acquirer=acquirer).order_by("paid_at")
    columns = {
        "received": Coalesce("payment__amount_received", "payment__amount"),
        "fee": F("payment__fee"),
        "vat": F("payment__fee_vat"),
    }
    found = charges.annotate(**columns)[:MAX_PAYMENTS].aggregate(
        payments=Count("pk"),
        since=Min("paid_at"),
        gross=Sum("received", default=0),
        fees=Sum("fee", default=0),
        fee_vat=Sum("vat", default=0),
    )
    code = accounts.acquirer(acquirer)
    owed = -queries.read_balances([code], None).get(code, 0)
    is_more = found["payments"] == MAX_PAYMENTS
    return OnTheWay(
        acquirer=acquirer,
        payments=found["payments"],
        since=found["since"],
        gross=int(found["gross"]),
        fee=int(found["fees"]),
        fee_vat=int(found["fee_vat"]),
        other=0 if is_more else owed - int(found["gross"]),
    )
