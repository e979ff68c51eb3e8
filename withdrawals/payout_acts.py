"""What staff can do to the nightly payout of a merchant, on its page."""

from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator
from django.utils.translation import gettext_lazy as _

from approvals.models import PayoutAccount
from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act, ActRefused
from core import money
from core.console.form_fields import BahtField
from core.http.objects import MAX_SATANG
from merchants.models import Merchant
from withdrawals import payouts
from withdrawals.models import PayoutDays, PayoutSchedule
from withdrawals.payout_models import LATEST_TIME

TERMS = ("days", "time", "float_amount", "account")


class PayoutScheduleForm(ReasonForm):
    """Begins with the terms that the merchant has."""

    account = forms.ModelChoiceField(
        PayoutAccount.objects.none(),
        label=_("Account"),
        help_text=_("From the list of payout accounts. A new one gets money after its waiting period."),
    )
    days = forms.ChoiceField(
        choices=PayoutDays.choices,
        initial=PayoutDays.EVERY_DAY,
        widget=forms.RadioSelect,
        label=_("Days"),
        help_text=_("Public holidays count as days: PromptPay works on all of them."),
    )
    time = forms.TimeField(
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        label=_("Time in Bangkok"),
        help_text=_("At most 23:30."),
        validators=[MaxValueValidator(LATEST_TIME, _("At most 23:30."))],
    )
    float_amount = BahtField(
        smallest=0,
        largest=MAX_SATANG,
        initial="0",
        label=_("Float in baht"),
        help_text=_("It stays in the balance. All above it is paid out."),
    )

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        account: Any = self.fields["account"]
        account.queryset = _accounts(row)
        if schedule := PayoutSchedule.objects.filter(pk=row.pk).first():
            self.initial.update({name: getattr(schedule, name) for name in TERMS})
            self.initial["float_amount"] = money.baht(schedule.float_amount)


def _accounts(merchant: Merchant) -> Any:
    return PayoutAccount.objects.filter(merchant=merchant, removed_at=None).order_by("added_at", "id")


def _set(merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    payouts.change(merchant, {name: values[name] for name in TERMS}, now=now)


def _stop(merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    if not _is_on(merchant, now):
        raise ActRefused(_("This is not possible now."))
    payouts.change(merchant, None, now=now)


def _is_on(merchant: Merchant, now: datetime) -> bool:
    return bool(PayoutSchedule.objects.filter(pk=merchant.pk, due_at__isnull=False).exists())


_act = partial(
    ObjectAct,
    act=Act.PAYOUT_SCHEDULE_CHANGED,
    permission="withdrawals.change_payoutschedule",
    words={"name": "name"},
    is_recorded_by_service=True,
)
PAYOUT_SCHEDULE_ACTS = (
    _act(
        "set-nightly-payout", _("Set the nightly payout"),
        explain=_(
            "From the next such time on, the whole balance of %(name)s above the float goes to the account, "
            "and nobody has to ask for it. Above the limits it waits for a second person. You cannot be "
            "that person."
        ),
        run=_set, is_possible=lambda merchant, now: _accounts(merchant).exists(), form=PayoutScheduleForm,
    ),
    _act(
        "stop-nightly-payout", _("Stop the nightly payout"),
        explain=_("%(name)s gets no more nightly payouts. Withdrawals that were made stay as they are."),
        run=_stop, is_possible=_is_on, is_dangerous=True,
    ),
)  # fmt: skip
