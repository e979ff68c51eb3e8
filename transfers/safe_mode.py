"""Safe mode: after a restore no money is sent until staff have compared the orders with their banks.

A restored database does not have the newest orders. It believes that it must still send them, and merchants
may ask for them again. Three things tell a restored database from the one that sent the orders:

- A copied row has another transaction (`xmin`) than the original. So each restored dump is found, also one
  that is loaded into the same database.
- A restored data directory begins a new timeline of the write-ahead log. So does a standby that takes over.
- Redis has the last sent orders (`transfers.sent_orders`). A disk that was put back does not have them.

Safe mode stops what is sent. Inquiries go on, also about orders that this database believes unsent.
See docs/decisions/79-safe-mode.md.
"""

import logging
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from audit_trail.acts import Act, ActRefused
from audit_trail.recording import recorded
from core import request_context
from core.database import rows
from transfers import models, sent_orders

log = logging.getLogger("transfers")
# What identifies a database, apart from the content of its tables. On a standby the timeline is unknown.
_HERE = """
    SELECT (SELECT system_identifier FROM pg_control_system()) AS system_identifier,
           (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database_oid,
           CASE WHEN NOT pg_is_in_recovery()
               THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
           END AS timeline
"""
_READ = f"""
    SELECT EXISTS (SELECT FROM transfers_safemode WHERE ended_at IS NULL),
           mark.installation,
           identity.mark_xmin = mark.xmin::text::bigint
               AND identity.system_identifier = here.system_identifier
               AND identity.database_oid = here.database_oid,
           identity.timeline = coalesce(here.timeline, identity.timeline),
           CASE WHEN mark.id IS NULL
               THEN (SELECT id FROM transfers_transfer WHERE submitted_at IS NOT NULL ORDER BY id LIMIT 1)
                   IS NOT NULL
           END
    FROM ({_HERE}) AS here
    LEFT JOIN transfers_databasemark AS mark ON true
    LEFT JOIN transfers_databaseidentity AS identity ON true
"""  # noqa: S608  # no values
# A new id of the installation begins a new list of sent orders, so that the old one proves nothing any more.
_WRITE_MARK = """
    INSERT INTO transfers_databasemark (id, installation) VALUES (1, gen_random_uuid())
    ON CONFLICT (id) DO UPDATE SET installation = excluded.installation
    RETURNING installation
"""
_WRITE_IDENTITY = f"""
    INSERT INTO transfers_databaseidentity (id, mark_xmin, system_identifier, database_oid, timeline)
    SELECT 1, mark.xmin::text::bigint, here.system_identifier, here.database_oid, here.timeline
    FROM transfers_databasemark AS mark, ({_HERE}) AS here
    ON CONFLICT (id) DO UPDATE SET mark_xmin = excluded.mark_xmin, timeline = excluded.timeline,
        system_identifier = excluded.system_identifier, database_oid = excluded.database_oid
"""  # noqa: S608  # no values


class _Patience:
    """Since when this process cannot ask Redis about a standby that took over."""

    SECONDS = 60
    since: datetime | None = None

    def lasts(self, now: datetime) -> bool:
        self.since = self.since or now
        return (now - self.since).total_seconds() < self.SECONDS


_patience = _Patience()


class _State(NamedTuple):
    """is_same, is_same_timeline: None without a mark. was_used: without a mark, whether orders were sent."""

    is_open: bool
    installation: UUID | None
    is_same: bool | None
    is_same_timeline: bool | None
    was_used: bool | None

    @property
    def is_new(self) -> bool:
        """No order was ever sent from here."""
        return self.installation is None and not self.was_used

    @property
    def cause(self) -> models.SafeModeCause | None:
        """What is wrong with this database, as far as it knows itself."""
        if self.is_new:
            return None
        if not self.is_same:
            return models.SafeModeCause.COPY
        return None if self.is_same_timeline else models.SafeModeCause.NEW_TIMELINE


def is_on() -> bool:
    """Whether no money may be sent. One statement, in the transaction that would send it."""
    state = _read()
    return state.is_open or state.cause is not None


def check(*, now: datetime, is_patient: bool = True) -> bool:
    """Begin safe mode if this database was restored. Returns whether safe mode is on.

    Each process calls it at its start, beat every 5 s, and each run of transfers. is_patient: give Redis a
    minute if it does not answer after a standby took over. It may just have lost its primary, too.
    """
    state = _read()
    if state.is_open:
        return True
    if state.is_new:
        sent_orders.complete(_accept())
        return False
    installation, cause = str(state.installation), state.cause
    found = sent_orders.compare(installation)
    missing = found.missing if found else []
    if cause == models.SafeModeCause.NEW_TIMELINE and settings.SYNCHRONOUS_STANDBY:
        if found is None and is_patient and _patience.lasts(now):
            return True
        if found and found.is_complete and not missing:
            log.warning("a standby took over and has every sent order: money is sent as before")
            sent_orders.complete(_accept())
            return False
    if cause is None and missing:
        cause = models.SafeModeCause.LOST_ORDERS
    if cause is None:
        _patience.since = None
        sent_orders.complete(installation)
        return False
    _begin(cause, missing, now=now)
    return True


def current() -> models.SafeMode | None:
    """The period of safe mode that has not ended."""
    return models.SafeMode.objects.filter(ended_at=None).first()


def pause(*, reason: str, now: datetime) -> models.SafeMode:
    """Begin safe mode on purpose, such as before a promotion, or after a disk was put back."""
    with recorded(Act.TRANSFERS_PAUSED, reason=reason) as recording:
        _begin(models.SafeModeCause.BY_STAFF, [], now=now)
        recording.row = period = models.SafeMode.objects.get(ended_at=None)
    return period


def resume(*, reason: str, now: datetime, is_inquiry_needed: bool = True) -> models.SafeMode:
    """End safe mode: staff have compared the orders with the banks. Queued orders are due at once.

    Raises ActRefused, and ValidationError if banks were not asked yet about orders that this database
    believes unsent. A form that shows it keeps what staff typed.
    """
    check(now=now, is_patient=False)
    with transaction.atomic():
        period = models.SafeMode.objects.select_for_update().filter(ended_at=None).first()
        if period is None:
            raise ActRefused(_("Money is sent already."))
        if is_inquiry_needed and (count := not_inquired(period)):
            text = _("Banks were not asked yet about %(count)s orders. Wait a minute, and try again.")
            raise ValidationError(text % {"count": count})
        with recorded(Act.TRANSFERS_RESUMED, period, reason=reason):
            ended_by = request_context.current().actor
            models.SafeMode.objects.filter(pk=period.pk).update(ended_at=now, ended_by=ended_by)
            _accept()
        models.Transfer.objects.filter(state=models.TransferState.QUEUED, lease_until=None).update(due_at=now)
    log.warning("%s ended safe mode: money is sent again", ended_by)
    return period


def waiting_orders() -> int:
    """How many orders are sent when safe mode ends, unless their bank has them."""
    return models.Transfer.objects.filter(state=models.TransferState.QUEUED).count()


def not_inquired(period: models.SafeMode) -> int:
    """Of these, how many banks were not asked since safe mode began."""
    waiting = models.Transfer.objects.filter(state=models.TransferState.QUEUED)
    inquiries = models.TransferEvent.objects.filter(
        type=models.TransferEventType.INQUIRY, transfer__in=waiting
    )
    inquired = inquiries.filter(created_at__gte=period.started_at)
    return waiting.exclude(pk__in=inquired.values("transfer")).count()


def _read() -> _State:
    return _State(*rows.run(_READ, []).fetchone())


def _begin(cause: models.SafeModeCause, lost_orders: list[str], *, now: datetime) -> None:
    lost = "\n".join(lost_orders)
    period = models.SafeMode(cause=cause, started_at=now, lost_orders=lost, **request_context.columns())
    models.SafeMode.objects.bulk_create([period], ignore_conflicts=True)
    log.error("safe mode: no money is sent. %s", period.get_cause_display())


@transaction.atomic
def _accept() -> str:
    """Make this database the one that sends orders. Returns the new id of the installation."""
    (installation,) = rows.run(_WRITE_MARK, []).fetchone()
    rows.run(_WRITE_IDENTITY, [])
    return str(installation)
