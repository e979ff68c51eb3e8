"""What waits for staff now, with a link to where they act. Each read is bounded."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, OuterRef, Q, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from approvals.models import Approval, ApprovalStatus
from audit_trail.note_models import Note
from audit_trail.notes import pages as notes
from console.approvals import approval_admin
from core import clock, money
from core.console import admin_lists
from core.database import rows
from ledger import services as ledger
from merchants.models import Merchant, Mode
from merchants.services import SANDBOX
from payments.cards import ACQUIRERS
from reconciliation.exceptions.exception_acts import VIEW_PERMISSION
from reconciliation.models import InquiryAnswer, InquiryOutcome, ReconciliationException
from settlements.models import AcquirerTransfer, OpenQuestion
from transfers.models import CircuitBreaker
from webhooks.delivery import metrics as deliveries
from webhooks.models import Endpoint, EndpointStatus
from withdrawals.models import NEEDS_STAFF, PayoutNight, PayoutSchedule

# Answers of banks that the page reads, the newest first.
MAX_ANSWERS = 500
# Older exceptions are red.
MAX_NAMES = 10
OVERDUE_AGE = timedelta(days=1)
_NOW = """
SELECT sum(count)::bigint, sum(amount)::bigint FROM counts_listcount
WHERE owner_id = %(mode)s AND list = %(list)s AND kind = ANY(%(kinds)s) AND bucket = 'month'
"""


@dataclass(frozen=True, slots=True)
class Notice:
    """A line of the page: what waits, how much, and where staff act. `tone` is its colour."""

    label: str
    text: str
    url: str
    tone: str


@dataclass(frozen=True, slots=True)
class BankHealth:
    """How a bank answered the newest inquiries."""

    bank: str
    answers: int
    silent: int
    average_ms: int
    is_open: bool

    @property
    def tone(self) -> str:
        if self.is_open or self.silent == self.answers:
            return "bad"
        return "wait" if self.silent else "good"


def notices(request: HttpRequest, mode: Mode, now: datetime) -> Iterator[Notice]:
    """What the user may see. Notices about nothing are calm, so that their place never changes."""
    if request.user.has_perm(notes.VIEW_PERMISSION):
        yield _handed_over(_("For you"), "me", Note.objects.with_person(request.user), now)
        yield _handed_over(_("For your team"), "team", Note.objects.with_team(request.user), now)
    if request.user.has_perm("merchants.view_merchant"):
        yield _at_standby(mode)
    if request.user.has_perm(VIEW_PERMISSION):
        yield _exceptions(mode, now)
    if request.user.has_perm("settlements.view_openquestion"):
        yield _questions(mode, now)
    if request.user.has_perm("settlements.view_acquirertransfer"):
        yield _late_transfers(mode, now)
    if request.user.has_perm("approvals.view_approval"):
        yield _approvals(mode, now)
    if request.user.has_perm("withdrawals.view_withdrawal"):
        yield _withdrawals(mode)
    if request.user.has_perm("withdrawals.view_payoutnight"):
        yield _payouts(mode)
    if request.user.has_perm("ledger.view_account"):
        yield _debts(mode)
    if request.user.has_perm("webhooks.view_endpoint"):
        yield _endpoints(mode)
        yield _deliveries(mode, now)


def banks(mode: Mode, now: datetime) -> list[BankHealth]:
    """Banks that were asked in the last day, of the newest answers, and banks that are not asked now.

    A row counts the same answers in a row, and has the duration of the last.
    """
    newest = InquiryAnswer.objects.order_by("-id").values_list("pk", flat=True)[:MAX_ANSWERS]
    of_mode = InquiryAnswer.objects.filter(payment__merchant__mode=mode)
    recent = of_mode.filter(pk__in=list(newest), answered_at__gt=now - timedelta(days=1))
    found: dict[str, list[tuple[str, int]]] = {}
    for bank, outcome, milliseconds, count in recent.values_list(
        "payment__qr_code__bank", "outcome", "duration_ms", "answer_count"
    ):
        found.setdefault(bank, []).extend([(outcome, milliseconds)] * count)
    breakers = CircuitBreaker.objects.filter(open_until__gt=now, merchant_id="", route__startswith="bank:")
    names = {breaker.route.removeprefix("bank:") for breaker in breakers}
    is_open = {name for name in names if (name == SANDBOX) == (mode == Mode.TEST)}
    return [
        BankHealth(
            bank=bank,
            answers=len(answers := found.get(bank, [])),
            silent=sum(outcome == InquiryOutcome.NO_ANSWER for outcome, _ in answers),
            average_ms=round(sum(milliseconds for _, milliseconds in answers) / max(len(answers), 1)),
            is_open=bank in is_open,
        )
        for bank in sorted(found.keys() | is_open)
    ]


def _handed_over(label: str, to: str, found: Any, now: datetime) -> Notice:
    url = f"{reverse('admin:audit_trail_note_changelist')}?handed_to={to}"
    return _waiting(label, url, found, "created_at", now, overdue=OVERDUE_AGE)


def _at_standby(mode: Mode) -> Notice:
    """Merchants whose new codes go to another bank, because their first bank does not answer."""
    found = Merchant.objects.filter(mode=mode, uses_standby=True).order_by("name", "id")
    names = list(found.values_list("name", flat=True)[:MAX_NAMES])
    text = ", ".join(names) or _("none")
    url = f"{_list('merchants_merchant', mode)}&uses_standby__exact=1"
    return Notice(_("New codes at the stand-by"), text, url, "wait" if names else "good")


def _exceptions(mode: Mode, now: datetime) -> Notice:
    found = ReconciliationException.objects.filter(is_sandbox=mode == Mode.TEST)
    url = _list("reconciliation_reconciliationexception", mode)
    return _waiting(_("Exceptions"), url, found, "opened_at", now, overdue=OVERDUE_AGE)


def _questions(mode: Mode, now: datetime) -> Notice:
    found = OpenQuestion.objects.filter(closed_at__isnull=True, acquirer=ACQUIRERS[mode])
    page = reverse("admin:settlements_openquestion_changelist")
    url = f"{page}?status=open&mode={mode}"
    return _waiting(_("Questions about settlements"), url, found, "opened_at", now, overdue=OVERDUE_AGE)


def _late_transfers(mode: Mode, now: datetime) -> Notice:
    found = AcquirerTransfer.objects.filter(acquirer=ACQUIRERS[mode]).late(now)
    url = f"{reverse('admin:on_the_way')}?mode={mode}"
    return _waiting(_("Late settlements"), url, found, "created_at", now, overdue=OVERDUE_AGE)


def _approvals(mode: Mode, now: datetime) -> Notice:
    waiting = approval_admin.of_mode(Approval.objects.waiting(), mode)
    url = f"{reverse('admin:approvals_approval_changelist')}?status={ApprovalStatus.WAITING}&mode={mode}"
    return _waiting(_("Approvals"), url, waiting, "requested_at", now)


def _waiting(
    label: str, url: str, rows: Any, since: str, now: datetime, *, overdue: timedelta = timedelta.max
) -> Notice:
    """How many rows wait, and the oldest for how long. since: their column with the time."""
    count = rows.order_by()[: admin_lists.MAX_COUNTED].count()
    if not count:
        return Notice(label, _("none"), url, "good")
    age = now - rows.order_by(since).values_list(since, flat=True)[0]
    text = ngettext("%(count)s waits", "%(count)s wait", count) % {"count": _bounded(count)}
    oldest = _("the oldest for %(duration)s") % {"duration": clock.format_duration(age)}
    return Notice(label, f"{text}, {oldest}", url, "bad" if age > overdue else "wait")


def _withdrawals(mode: Mode) -> Notice:
    label, url = _("Withdrawals under way"), _list("withdrawals_withdrawal", mode)
    values = {"mode": mode.value, "list": "withdrawals", "kinds": ["pending", "processing"]}
    count, satang = rows.run(_NOW, values).fetchone()
    text = f"{count:,}, {money.display(satang)}" if count else _("none")
    return Notice(label, text, url, "calm" if count else "good")


def _payouts(mode: Mode) -> Notice:
    """Merchants whose last night was skipped and needs staff, until they change the schedule."""
    label, url = _("Nightly payouts"), _list("withdrawals_payoutnight", mode)
    nights = PayoutNight.objects.filter(merchant=OuterRef("pk"), created_at__gt=OuterRef("changed_at"))
    last = Subquery(nights.order_by("-day").values("skip_reason")[:1])
    schedules = PayoutSchedule.objects.filter(due_at__isnull=False, merchant__mode=mode).annotate(last=last)
    count = schedules.filter(last__in=NEEDS_STAFF)[: admin_lists.MAX_COUNTED].count()
    if not count:
        return Notice(label, _("none skipped"), url, "good")
    text = ngettext("%(count)s merchant skipped", "%(count)s merchants skipped", count)
    return Notice(label, text % {"count": _bounded(count)}, url, "bad")


def _debts(mode: Mode) -> Notice:
    label, url = _("Negative balances"), _list("ledger_account", mode)
    debts = ledger.debts()
    of_mode = set(Merchant.objects.filter(pk__in=list(debts), mode=mode).values_list("pk", flat=True))
    satang = [debt for merchant_id, debt in debts.items() if merchant_id in of_mode]
    text = f"{len(satang):,}, {money.display(sum(satang))}" if satang else _("none")
    return Notice(label, text, url, "bad" if satang else "good")


def _endpoints(mode: Mode) -> Notice:
    label, url = _("Webhook endpoints"), _list("webhooks_endpoint", mode)
    is_active, is_paused = Q(status=EndpointStatus.ACTIVE), Q(health__paused_until__isnull=False)
    is_failing = Q(health__consecutive_failures__gt=0)
    known: dict[str, int] = Endpoint.objects.filter(deleted_at=None, merchant__mode=mode).aggregate(
        active=Count("pk", filter=is_active & ~is_paused & ~is_failing),
        failing=Count("pk", filter=is_active & ~is_paused & is_failing),
        paused=Count("pk", filter=is_active & is_paused),
        disabled=Count("pk", filter=~is_active),
    )
    text = _("%(active)s active, %(failing)s failing, %(paused)s paused, %(disabled)s disabled") % known
    return Notice(label, text, url, "good" if known["active"] == sum(known.values()) else "wait")


def _deliveries(mode: Mode, now: datetime) -> Notice:
    label, url = _("Deliveries"), _list("webhooks_delivery", mode)
    backlog = deliveries.backlog(now, admin_lists.MAX_COUNTED, mode=mode)
    words = {"due": _bounded(backlog.due), "paused": _bounded(backlog.paused)}
    text = _("%(due)s due, %(paused)s wait for their endpoint") % words
    seconds = deliveries.oldest_due_seconds(now, mode=mode)
    return Notice(label, text, f"{url}&state__exact=pending", "bad" if seconds > 60 else "good")


def _list(name: str, mode: Mode) -> str:
    return f"{reverse(f'admin:{name}_changelist')}?mode={mode}"


def _bounded(count: int) -> str:
    return f"{count:,}+" if count == admin_lists.MAX_COUNTED else f"{count:,}"
