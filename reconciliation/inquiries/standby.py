"""New codes go to the stand-by of a merchant while its first bank fails, and return when it answers again.

A code keeps its bank: this only says which bank the next one is made for (decision 106).
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import Q

from core import ids
from core.deadlines import Deadline
from core.work import due_work
from merchants import bank_connections
from merchants.models import Merchant
from reconciliation.inquiries import connection_tests, schedule
from reconciliation.models import Backoff, BankNotification, ReportSource

# One lost call is not a failing bank. In one batch, or in two batches in a row.
SILENT_INQUIRIES, SILENT_BATCHES = 2, 2
# A bank whose notifications come does not fail: its codes are paid and confirmed.
QUIET = timedelta(milliseconds=250)
# At least so long at the stand-by, so that a bank which comes and goes moves codes twice a minute at most.
STAY = timedelta(minutes=1)
# Outcomes of a test that say nothing about the other merchants of the bank.
OF_ONE_MERCHANT = {"answered", "credentials", "not_set_up"}


def leave(bank: str, unanswered: Counter[str], *, is_bank_silent: bool, now: datetime) -> None:
    """Move the new codes of merchants whose first bank fails. unanswered: inquiries of a batch by merchant.

    is_bank_silent: it answered none of several merchants, so the codes of its other merchants move too.
    """
    at_bank = Merchant.objects.filter(bank=bank, uses_standby=False, moved_at=None).exclude(standby_bank="")
    if not is_bank_silent:
        many = [merchant for merchant, count in unanswered.items() if count >= SILENT_INQUIRIES]
        rows = Backoff.objects.filter(Q(merchant__in=many) | Q(silent_batches__gte=SILENT_BATCHES), bank=bank)
        at_bank = at_bank.filter(pk__in=rows.filter(merchant__in=unanswered).values("merchant"))
    moving = list(at_bank.order_by("pk").values_list("pk", flat=True))
    since = ids.first("ntf_", now - QUIET)
    heard = BankNotification.objects.filter(pk__gte=since, bank=bank, source=ReportSource.CALLBACK)
    if moving and not heard.exists():
        for merchant_id in moving:
            bank_connections.move_codes(merchant_id, to_standby=True, now=now)


def return_codes(*, now: Callable[[], datetime]) -> None:
    """Ask the first banks of merchants at their stand-by; those that answer get the new codes again.

    A bank that is down is asked once a run, whichever merchant comes first.
    """
    since = now() - schedule.scaled(STAY)
    away = Merchant.objects.filter(uses_standby=True, moved_at=None, bank_changed_at__lte=since)
    down, deadline = set[str](), Deadline.after(due_work.RUN_SECONDS)
    for merchant in away.order_by("?"):
        if deadline.is_past:
            break
        if merchant.bank in down:
            continue
        outcome = connection_tests.run(merchant, merchant.bank, now=now()).outcome
        if outcome not in OF_ONE_MERCHANT:
            down.add(merchant.bank)
        if outcome == "answered":
            Backoff.objects.filter(bank=merchant.bank, merchant=merchant).delete()
            bank_connections.move_codes(merchant.pk, to_standby=False, now=now())
