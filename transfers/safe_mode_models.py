"""Periods of safe mode, and what tells this database from its copies. See `transfers.safe_mode`."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.database import triggers
from core.database.columns import CausedRow, KeyedRow, check, known


class SafeModeCause(models.TextChoices):
    """Why safe mode began."""

    COPY = "copy", _("The database is a copy, such as a restored dump")
    NEW_TIMELINE = "new_timeline", _("The server was restored from a backup, or a standby took over")
    LOST_ORDERS = "lost_orders", _("Banks got orders that this database does not have")
    BY_STAFF = "by_staff", _("Staff paused all outgoing money")


class SafeMode(CausedRow):
    """A period in which no money is sent. See `transfers.safe_mode`."""

    cause = models.CharField(max_length=12, choices=SafeModeCause.choices, verbose_name=_("cause"))
    started_at = models.DateTimeField(verbose_name=_("started at"))
    # Orders that a bank got and this database does not have, as far as Redis knows.
    lost_orders = models.TextField(blank=True, default="", verbose_name=_("lost orders"))
    ended_at = models.DateTimeField(null=True, verbose_name=_("ended at"))
    ended_by = models.CharField(max_length=160, blank=True, default="", verbose_name=_("ended by"))

    class Meta:
        verbose_name = verbose_name_plural = _("safe mode")
        default_permissions = ("view",)
        permissions = [
            ("pause_transfers", "Can pause all outgoing money"),
            ("resume_transfers", "Can resume outgoing money after a restore"),
        ]
        triggers = [
            triggers.keep_rows("a period of safe mode is never deleted"),
            triggers.ReadOnly("a period of safe mode only ends", exclude=["ended_at", "ended_by"]),
            triggers.set_once("ended_at", "a period of safe mode ends once"),
        ]
        constraints = [
            known("cause", SafeModeCause, name="safemode_cause_known"),
            check(
                "safemode_ended_by_iff_ended",
                Q(ended_at__isnull=True, ended_by="") | Q(ended_at__isnull=False),
            ),
            models.UniqueConstraint(fields=["ended_at"], nulls_distinct=False, name="safemode_one_at_a_time"),
        ]

    def __str__(self) -> str:
        return f"{self.get_cause_display()}, {self.started_at:%Y-%m-%d %H:%M}"


class DatabaseMark(KeyedRow):
    """One row, of which `DatabaseIdentity` knows the transaction that wrote it. A copied row has another."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    installation = models.UUIDField()  # names the list of sent orders in Redis

    class Meta(KeyedRow.Meta):
        constraints = [check("databasemark_single_row", Q(id=1))]


class DatabaseIdentity(KeyedRow):
    """Where the mark was written: one row that tells this database from its copies."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    mark_xmin = models.BigIntegerField()  # the transaction that wrote the mark
    system_identifier = models.BigIntegerField()  # of the PostgreSQL cluster
    database_oid = models.BigIntegerField()
    timeline = models.BigIntegerField()  # of the write-ahead log: a restore or a promotion begins another

    class Meta(KeyedRow.Meta):
        constraints = [check("databaseidentity_single_row", Q(id=1))]
