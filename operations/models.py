"""Heartbeats, the check of the encryption keys, and the closes of days."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.triggers import append_only


class Heartbeat(models.Model):
    """The last heartbeat of `beat`, or of the workers of a queue."""

    name = models.CharField(max_length=20, primary_key=True)
    recorded_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class EncryptionKeyCheck(models.Model):
    """A sealed text that only the keys of this database can open. See `operations.resealing`."""

    ONLY = 1

    id = models.SmallIntegerField(primary_key=True, default=ONLY)
    text_sealed = models.TextField(editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="encryption_key_check_single_row")
        ]

    def __str__(self) -> str:
        return str(self.id)


class DailyClose(models.Model):
    """The signed totals of a day in Bangkok time. Each one contains the hash of the one before."""

    number = models.BigIntegerField(primary_key=True)
    day = models.DateField(unique=True, verbose_name=_("day"))
    body = models.TextField(help_text=_("The JSON that is signed, byte by byte."))
    hash = models.CharField(max_length=64)
    previous_hash = models.CharField(max_length=64, blank=True)
    signature = models.CharField(max_length=88, help_text=_("Ed25519, in base64."))
    public_key = models.CharField(max_length=44)

    class Meta:
        verbose_name, verbose_name_plural = _("daily close"), _("daily closes")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["previous_hash"], name="dailyclose_one_successor"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="dailyclose_number_positive"),
        ]
        triggers = [append_only("a daily close is never changed")]

    def __str__(self) -> str:
        return str(self.day)
