"""What banks take for payments by QR code: terms of each merchant, from a day on.

Fee and VAT are rounded to the satang, a half up, each by itself, as Opn does
(docs/decisions/98-fees-and-settlement.md). Without terms the fee is zero. What a statement of the bank names
goes before all of this (`reconciliation.matching.statement_fees`).
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext as _

from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import money
from core.clock import BANGKOK
from core.database import triggers
from core.database.columns import check
from ledger.services import NO_FEE, Fee
from merchants.models import Merchant

MAX_FIXED, MAX_RATE = 10_000, 2_000  # 100 THB, 20 %
VAT_RATE = 700  # 7 %


class FeeTerms(models.Model):
    """What a bank of a merchant takes for each payment by QR code, until the next terms begin.

    Append-only, and never for a day that has begun: a change does not touch the past.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    # Of the second bank.
    is_of_standby = models.BooleanField(default=False, db_default=False, verbose_name="of the stand-by")
    starts_on = models.DateField()  # the first day, in Bangkok
    fixed = models.IntegerField()  # satang for each payment
    rate = models.IntegerField()  # hundredths of a percent of the payment: 80 is 0.80 %
    vat_rate = models.IntegerField(verbose_name="VAT")  # hundredths of a percent of the fee
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        permissions = [("set_fees", "Can set what banks take for payments by QR code")]
        verbose_name = verbose_name_plural = "fee terms"
        triggers = [
            triggers.append_only("terms of fees are never changed"),
            triggers.Refuse(
                "starts_later",
                triggers.INSERT,
                "terms of fees begin on a later day",
                condition="NEW.starts_on <= (NEW.created_at AT TIME ZONE 'Asia/Bangkok')::date",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "is_of_standby", "starts_on"], name="feeterms_once_a_day"
            ),
            check(
                "feeterms_in_range",
                models.Q(fixed__gte=0, fixed__lte=MAX_FIXED)
                & models.Q(rate__gte=0, rate__lte=MAX_RATE)
                & models.Q(vat_rate__gte=0, vat_rate__lte=MAX_RATE),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.merchant_id} from {self.starts_on}"

    @property
    def words(self) -> str:
        vat = _(", with VAT") if self.vat_rate else ""
        vat += _(" (stand-by)") if self.is_of_standby else ""
        text = _("From %(day)s: %(fixed)s and %(rate)s %% of each payment")
        rate = f"{Decimal(self.rate) / 100:.2f}"
        return text % {"day": self.starts_on, "fixed": money.display(self.fixed), "rate": rate} + vat

    def fee_of(self, received: int) -> Fee:
        """The fee of `received` satang. It is at most these: a merchant never pays for being paid."""
        fee = min(received, self.fixed + _share(received, self.rate))
        return Fee(fee, min(received - fee, _share(fee, self.vat_rate)))


def fees_of(paid: Sequence[tuple[str, str, int, datetime]]) -> list[Fee]:
    """The fees of payments, each its merchant, bank, received satang and time, by one statement."""
    of_these = FeeTerms.objects.filter(merchant_id__in={merchant_id for merchant_id, *_ in paid})
    terms = list(of_these.select_related("merchant").order_by("-starts_on"))
    return [_fee(terms, *each) for each in paid]


def terms_of(merchant_id: str, bank: str, at: datetime) -> FeeTerms | None:
    """The terms of a payment that this bank reports at this time."""
    found = FeeTerms.objects.filter(merchant_id=merchant_id).select_related("merchant").order_by("-starts_on")
    return _valid(found, merchant_id, bank, at)


def set_terms(
    merchant: Merchant,
    *,
    starts_on: date,
    fixed: int,
    rate: int,
    vat_rate: int,
    now: datetime,
    is_of_standby: bool = False,
) -> FeeTerms:
    """Set what a bank takes from a later day on. Raises ValidationError by the field at fault."""
    if starts_on <= now.astimezone(BANGKOK).date():
        raise ValidationError({"starts_on": _("The first day must be a later day: payments keep their fee.")})
    terms = FeeTerms(
        merchant=merchant,
        is_of_standby=is_of_standby,
        starts_on=starts_on,
        fixed=fixed,
        rate=rate,
        vat_rate=vat_rate,
        created_at=now,
    )
    terms.clean_fields()
    try:
        with transaction.atomic(), recorded(Act.FEES_SET, merchant):
            terms.save(force_insert=True)
    except IntegrityError:
        raise ValidationError({"starts_on": _("There are terms from this day on already.")}) from None
    return terms


def _valid(terms: Iterable[FeeTerms], merchant_id: str, bank: str, at: datetime) -> FeeTerms | None:
    """The newest of these terms that hold for a payment at this bank. terms: the newest first."""
    day = at.astimezone(BANGKOK).date()
    valid = (each for each in terms if each.merchant_id == merchant_id and each.starts_on <= day)
    return next((each for each in valid if each.is_of_standby == (bank == each.merchant.standby_bank)), None)


def _fee(terms: Iterable[FeeTerms], merchant_id: str, bank: str, received: int, at: datetime) -> Fee:
    found = _valid(terms, merchant_id, bank, at)
    return found.fee_of(received) if found else NO_FEE


def _share(amount: int, rate: int) -> int:
    return (amount * rate + 5_000) // 10_000
