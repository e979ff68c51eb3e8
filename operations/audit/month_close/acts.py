"""How staff close a month in the console."""

from datetime import date, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act, ActRefused
from core import clock
from operations.audit.daily_close.closing import NotClosable
from operations.audit.daily_close.signing import NoSigningKey
from operations.audit.month_close import closing
from operations.models import MonthClose


class MonthForm(ReasonForm):
    month = forms.DateField(widget=forms.HiddenInput)

    def __init__(self, row: Any, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        self.initial["month"] = closing.due(clock.now())


def _explain(_row: None) -> str:
    month = closing.due(now := clock.now())
    try:
        closing.check(month, now)
    except NotClosable as refusal:
        raise ActRefused(str(refusal)) from None
    text = _("%(month)s is closed and signed. A later change is a correction in the next month.")
    return text % {"month": f"{month:%Y-%m}"}


def _close(_row: None, values: dict[str, Any], now: datetime) -> MonthClose:
    month: date = values["month"]
    try:
        return closing.close(month, now=now)
    except NotClosable as refusal:
        raise ValidationError(str(refusal)) from None
    except NoSigningKey:
        text = _("This process has no key to sign with. Run: manage.py close_month %(month)s --sign")
        raise ValidationError(text % {"month": f"{month:%Y-%m}"}) from None


MONTH_ACTS = (
    ObjectAct(
        slug="close-month",
        label=gettext_lazy("Close the month"),
        act=Act.MONTH_CLOSED,
        permission="operations.close_month",
        explain=_explain,
        run=_close,
        form=MonthForm,
        is_recorded_by_service=True,
    ),
)
