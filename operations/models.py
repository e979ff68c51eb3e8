"""Heartbeats for readiness, and the proof that the encryption keys are right."""

from django.db import models


class Heartbeat(models.Model):
    """When a part last did its work: `beat`, or a queue that was served."""

    name = models.CharField(max_length=20, primary_key=True)
    recorded_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class EncryptionKeyCheck(models.Model):
    """A sealed text: who opens it has the keys of this database. See `operations.encryption`."""

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
