"""Signs of life, for readiness, failed logins, and the proof that the encryption keys are right."""

from django.db import models


class Heartbeat(models.Model):
    """When a part last did its work: `beat`, or a queue that was served."""

    name = models.CharField(max_length=20, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class LoginFailures(models.Model):
    """How many logins failed for one subject; see `console.lockouts`."""

    # address:203.0.113.7, user:somsri, name:<digest of an unknown name> or device:<id>
    subject = models.CharField(max_length=200, primary_key=True)
    failures = models.IntegerField()
    ends_at = models.DateTimeField(db_index=True, verbose_name="counted until")

    class Meta:
        verbose_name = verbose_name_plural = "failed logins"
        default_permissions = ("view",)
        permissions = [("lift_lockout", "Can lift a lock-out")]
        constraints = [
            models.CheckConstraint(condition=models.Q(failures__gte=0), name="login_failures_not_negative")
        ]

    def __str__(self) -> str:
        return self.subject


class KeyCheck(models.Model):
    """A sealed text: who opens it has the keys of this database. See `console.encryption`."""

    ONLY = 1

    id = models.SmallIntegerField(primary_key=True, default=ONLY)
    text_sealed = models.TextField(editable=False)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="key_check_only_one")]

    def __str__(self) -> str:
        return str(self.id)
