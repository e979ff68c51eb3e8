"""The exports of people who work in the console, and limits of their logins. allauth has the rest."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.database.columns import KeyedRow, known
from core.work.background_jobs import OPEN_STATES, BackgroundJob, JobState


class SignInLimit(KeyedRow):
    """Django's cache with allauth's counts of failed logins, for all processes, also without Redis."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    class Meta(KeyedRow.Meta):
        permissions = [
            ("lift_lockout", "Can lift a lockout"),
            ("end_sessions", "Can end the sessions of others"),
            ("reset_second_factor", "Can reset the second factor of others"),
        ]


class ExportFailure(models.TextChoices):
    """Why there is no file."""

    NOT_ALLOWED = "not_allowed", _("You may no longer see this list.")
    INVALID = "invalid", _("The filters are not valid.")
    TOO_LARGE = "too_large", _("The file would be too large. Use narrower filters and try again.")
    TOO_LONG_TO_PRINT = (
        "too_long_to_print",
        _("The report is too long to print. Choose a merchant, or download CSV or Excel."),
    )
    NOT_CLOSED = "not_closed", _("No day of these payments has been closed yet.")
    OTHER = "other", _("The file could not be written. Use narrower filters and try again.")


class Export(BackgroundJob):
    """A list that a worker writes to a file for a member of staff; see `console.exports`."""

    owner: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="exports")
    list = models.CharField(max_length=80)
    query = models.TextField(blank=True, default="")
    file_type = models.CharField(max_length=8)
    language = models.CharField(max_length=10, db_default="en")  # of the headers
    total = models.BigIntegerField(null=True)
    rows = models.BigIntegerField(default=0)
    failure = models.CharField(max_length=17, choices=ExportFailure.choices, default=ExportFailure.OTHER)
    has_personal_data = models.BooleanField(db_default=True)  # only who may see it gets the file

    class Meta:
        verbose_name, verbose_name_plural = _("export"), _("exports")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["owner"], condition=Q(state__in=OPEN_STATES), name="export_one_open"
            ),
            known("state", JobState, name="export_state_known"),
        ]

    @property
    def progress(self) -> str:
        """How many rows are written, and of how many."""
        is_known = self.state == JobState.RUNNING and self.total is not None
        return f"{self.rows:,} / {self.total:,}" if is_known else f"{self.rows:,}"


class ExportPart(KeyedRow):
    """A part of a finished file, compressed. All parts are written in one commit with the state."""

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="parts")
    number = models.IntegerField()
    content = models.BinaryField()

    class Meta(KeyedRow.Meta):
        verbose_name, verbose_name_plural = _("part of an export"), _("parts of exports")
        constraints = [models.UniqueConstraint(fields=["export", "number"], name="exportpart_once")]
