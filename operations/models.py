"""Heartbeats, and the check of the encryption keys."""

from django.db import models


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
