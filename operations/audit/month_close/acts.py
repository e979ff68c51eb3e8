"""How staff close a month in the console."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act, ActRefused
from core import clock
from operations.audit.daily_close import signing
from operations.audit.daily_close.closing import NotClosable
from operations.audit.daily_close.signing import NoSigningKey
from operations.audit.month_close import closing
from operations.models import MonthClose


class MonthForm(ReasonForm):
    month = forms.DateField(widget=forms.HiddenInput)

    def __init__(self, row: Any, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        self.initial["month"] = closing.due(clock.now())


@contextmanager
def _refusals(month: date) -> Iterator[None]:
    """Tell staff why the month cannot be closed."""
    try:
        yield
    except NotClosable as refusal:
        raise ActRefused(str(refusal)) from None
    except NoSigningKey:
        text = _("This process has no key to sign with. Run: manage.py close_month %(month)s --sign")
        raise ActRefused(text % {"month": f"{month:%Y-%m}"}) from None


def _explain(_row: None) -> str:
    month = closing.due(now := clock.now())
    with _refusals(month):
        closing.check(month, now)
        signing.public_key()
    text = _("%(month)s is closed and signed. A later change is a correction in the next month.")
    return text % {"month": f"{month:%Y-%m}"}


def _close(_row: None, values: dict[str, Any], now: datetime) -> MonthClose:
    with _refusals(values["month"]):
        return closing.close(values["month"], now=now)


MONTH_ACTS = (
    ObjectAct(
        "close-month", gettext_lazy("Close the month"), Act.MONTH_CLOSED, "operations.close_month",
        _explain,
        _close,
        form=MonthForm, is_recorded_by_service=True,
    ),
)  # fmt: skip
