"""What staff can do to failed logins."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from console import lockouts
from console.models import LoginThrottle


def _explain_lift(throttle: LoginThrottle) -> str:
    text = _("%(subject)s can log in again at once. Make sure that no stranger guesses passwords.")
    return text % {"subject": throttle.subject}


def _lift(throttle: LoginThrottle, values: dict[str, Any], now: datetime) -> None:
    if not lockouts.lift(throttle.subject):
        raise ValidationError(_("The lockout is over: nothing changed."))


def _is_counted(throttle: LoginThrottle, now: datetime) -> bool:
    return True


LOCKOUT_ACTS = (
    ObjectAct(
        slug="lift",
        label=gettext_lazy("Lift the lockout"),
        act=Act.LOCKOUT_LIFTED,
        permission="console.lift_lockout",
        explain=_explain_lift,
        run=_lift,
        is_possible=_is_counted,
        is_recorded_by_service=True,
    ),
)
