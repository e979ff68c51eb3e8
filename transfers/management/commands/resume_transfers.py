from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit_trail.acts import ActRefused
from core import clock
from transfers import safe_mode
from transfers.models import SafeMode


class Command(BaseCommand):
    help = (
        "Show whether safe mode is on, why, and which orders wait. With --reason: end it, and send money "
        "again. Compare the orders since the backup with the banks before (docs/restore.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--reason", default="", help="What you compared; ends safe mode.")
        parser.add_argument(
            "--without-inquiries",
            action="store_true",
            help="Resume although banks were not asked about some orders. Their banks must then refuse an "
            "order with an id that they know.",
        )

    def handle(self, *args: Any, **options: Any) -> str:
        now = clock.now()
        if not safe_mode.check(now=now):
            return "Safe mode is off: money is sent as usual."
        if not options["reason"]:
            return self._report()
        count = safe_mode.waiting_orders()
        try:
            safe_mode.resume(
                reason=options["reason"], now=now, is_inquiry_needed=not options["without_inquiries"]
            )
        except ActRefused as refusal:
            raise CommandError(str(refusal)) from None
        except ValidationError as refusal:
            raise CommandError(
                f"{refusal.messages[0]} The workers of the queue transfers ask the banks within a minute."
            ) from None
        return f"Money is sent again. Orders that are sent now: {count}."

    def _report(self) -> str:
        period = SafeMode.objects.get(ended_at=None)
        lines = [
            f"Safe mode is on since {period.started_at:%Y-%m-%d %H:%M} UTC. {period.get_cause_display()}.",
            f"Orders that wait, and are sent when safe mode ends: {safe_mode.waiting_orders()}.",
            f"Of these, banks were not asked yet about {safe_mode.not_inquired(period)}.",
        ]
        if lost := period.lost_orders.split():
            lines.append(f"Banks got these orders, and this database does not have them: {' '.join(lost)}")
        lines.append(
            "Nothing is resumed. Compare the orders since the backup with each bank, then give --reason."
        )
        return "\n".join(lines)
