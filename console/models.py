"""Failed logins."""

from django.db import models


class LoginThrottle(models.Model):
    """How many logins failed for one subject; see `console.lockouts`."""

    # address:203.0.113.7, user:somsri, name:<digest of an unknown name> or device:<id>
    subject = models.CharField(max_length=200, primary_key=True)
    failure_count = models.IntegerField()
    expires_at = models.DateTimeField(db_index=True, verbose_name="counted until")

    class Meta:
        verbose_name = verbose_name_plural = "failed logins"
        default_permissions = ("view",)
        permissions = [("lift_lockout", "Can lift a lockout")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(failure_count__gte=0), name="login_throttle_failure_count_not_negative"
            )
        ]

    def __str__(self) -> str:
        return self.subject
