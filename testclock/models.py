"""How far each test merchant moved its time."""

from django.db import models

from core.database.columns import KeyedRow, check
from merchants.models import Merchant

MAX_SECONDS = 90 * 86_400


class MerchantClock(KeyedRow):
    """The seconds that a test merchant has skipped since the last reset. A trigger refuses live merchants.

    Every advance changes this row in the transaction in which it moves other rows.
    """

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    advanced_seconds = models.IntegerField(default=0)
    advanced_at = models.DateTimeField(null=True)  # when it was last advanced, in real time

    class Meta:
        constraints = [
            check(
                "merchantclock_within_limits",
                models.Q(advanced_seconds__gte=0, advanced_seconds__lte=MAX_SECONDS),
            )
        ]
