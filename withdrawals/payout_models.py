"""The nightly payout of a merchant: when and where to, and what became of each night."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from approvals.models import PayoutAccount
from core import clock
from core.database import triggers
from core.database.columns import KeyedRow, check, known
from core.http.objects import MAX_SATANG
from merchants.models import Merchant

LATEST_TIME = time(23, 30)
"""Later than this, a night that was missed could not be made up for before midnight."""


class PayoutDays(models.TextChoices):
    EVERY_DAY = "every_day", _("Every day")
    WEEKDAYS = "weekdays", _("Monday to Friday")


class SkipReason(models.TextChoices):
    """Why a night has no withdrawal. Where it is the code of an error, the withdrawal was refused with it."""

    NOTHING_AVAILABLE = "nothing_available", _("Nothing was above the float")
    TOO_SMALL = "too_small", _("Less than the smallest withdrawal was above the float")
    NEGATIVE_BALANCE = "negative_balance", _("The merchant had a debt")
    ACCOUNT_NOT_ALLOWED = "payout_account_not_allowed", _("The account was not on the list any more")
    ACCOUNT_TOO_NEW = "payout_account_too_new", _("The waiting period of the account was not over")
    SUSPENDED = "merchant_suspended", _("The merchant was suspended")
    SAFE_MODE = "safe_mode", _("All outgoing money was paused")
    MISSED = "missed", _("Nothing ran at its time or later on its day")


NEEDS_STAFF = (SkipReason.ACCOUNT_NOT_ALLOWED, SkipReason.MISSED)
"""The next night does not go better by itself, or nobody knows why it went wrong."""


class PayoutScheduleQuerySet(models.QuerySet["PayoutSchedule"]):
    def due(self, now: datetime) -> "PayoutScheduleQuerySet":
        return self.filter(due_at__lte=now)


class PayoutSchedule(KeyedRow):
    """When and where to a balance is paid out, down to the float. Only `withdrawals.payouts` writes it."""

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    days = models.CharField(max_length=9, choices=PayoutDays.choices)
    time = models.TimeField()  # in Bangkok
    float_amount = models.BigIntegerField(verbose_name=_("float"))  # satang that stay in the balance
    account = models.ForeignKey(PayoutAccount, on_delete=models.PROTECT, related_name="+", db_index=False)
    due_at = models.DateTimeField(null=True)  # the next night; empty while the schedule is off
    changed_by = models.CharField(max_length=160)  # the actor, as in core.request_context
    changed_at = models.DateTimeField()

    objects = PayoutScheduleQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = _("payout schedule"), _("payout schedules")
        default_permissions = ("view", "change")
        triggers = [
            triggers.keep_rows("a payout schedule is switched off, and its row stays"),
            triggers.ReadOnly("a payout schedule keeps its merchant", fields=["merchant"]),
        ]
        indexes = [models.Index(fields=["due_at"], name="payout_schedule_due")]
        constraints = [
            known("days", PayoutDays, name="payout_schedule_days_known"),
            check("payout_schedule_in_time", Q(time__lte=LATEST_TIME)),
            check("payout_schedule_float", Q(float_amount__gte=0, float_amount__lte=MAX_SATANG)),
            # The person who may not approve its withdrawals.
            check("payout_schedule_changed_by_somebody", ~Q(changed_by="")),
        ]

    def first_due(self, now: datetime) -> datetime:
        """The next time of a night that has no result yet."""
        here = now.astimezone(clock.BANGKOK)
        today = here.date()
        is_over = here.time() >= self.time
        is_over = is_over or PayoutNight.objects.filter(merchant=self.merchant, day=today).exists()
        return self._due_after(today if is_over else today - timedelta(days=1))

    def take_due(self, now: datetime) -> Iterator[datetime]:
        """Yield each time that is due, and move `due_at` past it. The caller saves the row."""
        while (due_at := self.due_at) is not None and due_at <= now:
            self.due_at = self._due_after(due_at.astimezone(clock.BANGKOK).date())
            yield due_at

    def _due_after(self, day: date) -> datetime:
        day += timedelta(days=1)
        while self.days == PayoutDays.WEEKDAYS and day.weekday() > 4:  # 4 is Friday
            day += timedelta(days=1)
        return datetime.combine(day, self.time, clock.BANGKOK)


class PayoutNight(models.Model):
    """A night of a schedule, by its day in Bangkok: the satang of its withdrawals, or why it has none.

    Its withdrawals are written in its commit: the database compares the sum (`withdrawals/sql/payouts.sql`).
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    day = models.DateField(verbose_name=_("night"))
    amount = models.BigIntegerField()  # satang of all its withdrawals
    skip_reason = models.CharField(max_length=26, choices=SkipReason.choices, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        verbose_name, verbose_name_plural = _("nightly payout"), _("nightly payouts")
        default_permissions = ("view",)
        triggers = [
            triggers.append_only("what became of a night never changes"),
            triggers.Refuse(
                "paid_on_its_day",
                triggers.INSERT,
                "a night is paid on its day in Bangkok, or never",
                condition="NEW.amount > 0 AND NEW.day <> (NEW.created_at AT TIME ZONE 'Asia/Bangkok')::date",
            ),
        ]
        indexes = [models.Index(fields=["day", "id"], name="payout_night_newest_first")]
        constraints = [
            models.UniqueConstraint(fields=["merchant", "day"], name="payout_night_once"),
            check(
                "payout_night_paid_or_skipped",
                Q(amount=0, skip_reason__in=SkipReason.values) | Q(amount__gt=0, skip_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.merchant_id} {self.day}"
