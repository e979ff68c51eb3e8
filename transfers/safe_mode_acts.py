"""What staff can do about safe mode: pause all outgoing money, and resume it."""

from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from transfers import safe_mode
from transfers.explanations import PAUSE, RESUME

PAUSE_ACTS = (
    ObjectAct(
        slug="pause",
        label=gettext_lazy("Pause all outgoing money"),
        act=Act.TRANSFERS_PAUSED,
        permission="transfers.pause_transfers",
        explain=lambda _row: str(PAUSE),
        run=lambda _row, values, now: safe_mode.pause(reason=values["reason"], now=now),
        is_possible=lambda _row, now: not safe_mode.is_on(),
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
        explain=lambda _period: str(RESUME).format(count=safe_mode.waiting_orders()),
        run=lambda _period, values, now: safe_mode.resume(reason=values["reason"], now=now),
        is_possible=lambda period, now: period.ended_at is None,
        is_dangerous=True,
        is_recorded_by_service=True,
    ),
)
