"""What staff can do about safe mode: pause all outgoing money, and resume it."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from transfers import safe_mode
from transfers.models import SafeMode


def _explain_pause(_row: None) -> str:
    return _(
        "From now on the service sends no money: no refund, withdrawal or return, and no card is charged. "
        "What merchants ask for waits, and banks are still asked about what is under way."
    )


def _pause(_row: None, values: dict[str, Any], now: datetime) -> SafeMode:
    return safe_mode.pause(reason=values["reason"], now=now)


def _is_off(_row: None, now: datetime) -> bool:
    return not safe_mode.is_on()


def _explain_resume(period: SafeMode) -> str:
    text = _(
        "The service sends money again. %(count)s orders wait, and their banks did not say that they have "
        "them: these are sent now. Before you resume, compare the orders since the backup with the statement "
        "of each bank. An order that a bank carried out and that is missing here would be paid twice if the "
        "merchant asks for it again."
    )
    return text % {"count": safe_mode.waiting_orders()}


def _resume(period: SafeMode, values: dict[str, Any], now: datetime) -> None:
    try:
        safe_mode.resume(reason=values["reason"], now=now)
    except safe_mode.NotInSafeMode:
        raise ValidationError(_("Money is sent already: nothing changed.")) from None
    except safe_mode.OrdersNotInquired as refusal:
        text = _("Banks were not asked yet about %(count)s orders. Wait a minute, and try again.")
        raise ValidationError(text % {"count": refusal.count}) from None


def _is_open(period: SafeMode, now: datetime) -> bool:
    return period.ended_at is None


PAUSE_ACTS = (
    ObjectAct(
        slug="pause",
        label=gettext_lazy("Pause all outgoing money"),
        act=Act.TRANSFERS_PAUSED,
        permission="transfers.pause_transfers",
        explain=_explain_pause,
        run=_pause,
        is_possible=_is_off,
        is_dangerous=True,
        is_recorded_by_service=True,
    ),
)
SAFE_MODE_ACTS = (
    ObjectAct(
        slug="resume",
        label=gettext_lazy("Resume outgoing money"),
        act=Act.TRANSFERS_RESUMED,
        permission="transfers.resume_transfers",
        explain=_explain_resume,
        run=_resume,
        is_possible=_is_open,
        is_dangerous=True,
        is_recorded_by_service=True,
    ),
)
