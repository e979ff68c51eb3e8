"""People who work in the console: their invitations, sessions and second factors, and failed logins."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession, BaseSessionManager
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core import vault
from core.background_jobs import OPEN_STATES, BackgroundJob, JobState
from core.triggers import UPDATE, ReadOnly, Refuse, set_once


class LoginThrottle(models.Model):
    """How many logins failed for one subject; see `console.lockouts`."""

    # address:203.0.113.7, user:somsri, name:<digest of an unknown name>, device:<id> or code:somsri
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


class SessionQuerySet(models.QuerySet["StaffSession"]):
    def ended(self, now: datetime) -> "SessionQuerySet":
        """Sessions that are too old, or had no request for too long."""
        return self.filter(Q(expire_date__lte=now) | Q(last_used_at__lte=now - idle_period()))

    def active(self, now: datetime) -> "SessionQuerySet":
        return self.filter(expire_date__gt=now, last_used_at__gt=now - idle_period())


def idle_period() -> timedelta:
    """How long a session may be without a request."""
    return timedelta(minutes=settings.SESSION_IDLE_MINUTES)


class StaffSession(AbstractBaseSession):
    """The session of a browser; see `console.sessions`. To delete the row ends the session."""

    user: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="sessions"
    )
    last_used_at = models.DateTimeField(db_index=True)

    objects: ClassVar[Any] = BaseSessionManager.from_queryset(SessionQuerySet)()

    class Meta(AbstractBaseSession.Meta):
        abstract = False
        default_permissions = ()
        permissions = [("end_sessions", "Can end the sessions of others")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.last_used_at}"

    @classmethod
    def get_session_store_class(cls) -> Any:
        from console.sessions import SessionStore

        return SessionStore


class SecondFactor(models.Model):
    """The authenticator app of a member of staff: a secret from which both sides compute codes (RFC 6238)."""

    user: Any = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor"
    )
    secret_sealed = models.TextField()
    created_at = models.DateTimeField()
    # The time step of the newest accepted code. This code and older ones are refused.
    last_step = models.BigIntegerField()

    class Meta:
        verbose_name, verbose_name_plural = _("second factor"), _("second factors")
        default_permissions = ()
        permissions = [("reset_second_factor", "Can reset the second factor of others")]
        triggers = [
            ReadOnly("a second factor is replaced, never changed", exclude=["last_step"]),
            Refuse("code_once", UPDATE, "each code is used once", condition="NEW.last_step < OLD.last_step"),
        ]

    def __str__(self) -> str:
        return str(self.user_id)

    @property
    def secret(self) -> str:
        """The secret in base32. Raises vault.CannotOpen."""
        return vault.open_sealed(self.secret_sealed, context=self.context_of(self.user_id))

    @staticmethod
    def context_of(user_id: int) -> str:
        return f"staff:{user_id}:second_factor"


class RecoveryCode(models.Model):
    """A code that replaces the authenticator app once. It has 80 random bits, so a plain digest hides it."""

    user: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes"
    )
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name, verbose_name_plural = _("recovery code"), _("recovery codes")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "digest"], name="recoverycode_once")]
        triggers = [
            ReadOnly("a recovery code is used, never changed", exclude=["used_at"]),
            set_once("used_at", "each recovery code is used once"),
        ]

    def __str__(self) -> str:
        return str(self.user_id)


class Invitation(models.Model):
    """A link by which a new member of staff chooses a password. The row is deleted when the link is used."""

    user: Any = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitation"
    )
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name, verbose_name_plural = _("invitation"), _("invitations")
        default_permissions = ()
        triggers = [ReadOnly("an invitation is replaced, never changed")]

    def __str__(self) -> str:
        return str(self.user_id)


class Passkey(models.Model):
    """A device or password manager that proves its presence by a signature (WebAuthn), beside the app."""

    user: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=60)
    # Both in URL-safe base64. A public key is no secret.
    credential_id = models.TextField(unique=True)
    public_key = models.TextField()
    # Some devices count their signatures; the others always answer 0.
    sign_count = models.BigIntegerField()
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name, verbose_name_plural = _("passkey"), _("passkeys")
        default_permissions = ()
        triggers = [
            ReadOnly("a passkey is replaced, never changed", exclude=["sign_count", "last_used_at"]),
            Refuse(
                "count_rises", UPDATE, "signatures are counted", condition="NEW.sign_count < OLD.sign_count"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Export(BackgroundJob):
    """A list that a worker writes to a file for a member of staff; see `console.exports`."""

    owner: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="exports")
    list = models.CharField(max_length=80)
    query = models.TextField(blank=True, default="")
    file_type = models.CharField(max_length=8)
    language = models.CharField(max_length=10, db_default="en", help_text="Of the headers.")
    total = models.BigIntegerField(null=True)
    rows = models.BigIntegerField(default=0)
    has_personal_data = models.BooleanField(db_default=True, help_text="Only who may see it gets the file.")

    class Meta:
        verbose_name, verbose_name_plural = _("export"), _("exports")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["owner"], condition=Q(state__in=OPEN_STATES), name="export_one_open"
            ),
            models.CheckConstraint(condition=Q(state__in=JobState.values), name="export_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.list} {self.state}"

    @property
    def progress(self) -> str:
        """How many rows are written, and of how many."""
        is_known = self.state == JobState.RUNNING and self.total is not None
        return f"{self.rows:,} / {self.total:,}" if is_known else f"{self.rows:,}"

    @property
    def percent(self) -> int | None:
        """Of a running export. The total is that of its start, so rows may exceed it."""
        if self.state != JobState.RUNNING or not self.total:
            return None
        return min(99, 100 * self.rows // self.total)


class ExportPart(models.Model):
    """A part of a finished file, compressed. All parts are written in one commit with the state."""

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="parts")
    number = models.IntegerField()
    content = models.BinaryField()

    class Meta:
        verbose_name, verbose_name_plural = _("part of an export"), _("parts of exports")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["export", "number"], name="exportpart_once")]

    def __str__(self) -> str:
        return f"{self.export_id}:{self.number}"


class SavedFilter(models.Model):
    """The filters of a list that a member of staff uses again, under a name. Only its owner sees it."""

    user: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters"
    )
    list_label = models.CharField(
        max_length=100, help_text="The label of the model, such as payments.payment."
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, help_text="The filters as in the address of the list.")
    created_at = models.DateTimeField()

    class Meta:
        verbose_name, verbose_name_plural = _("saved filter"), _("saved filters")
        default_permissions = ()
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "list_label", "name"], name="savedfilter_name_once"),
            models.CheckConstraint(condition=~Q(name="") & ~Q(query=""), name="savedfilter_not_empty"),
        ]
        triggers = [
            ReadOnly("a saved filter is replaced, never changed", fields=["user", "list_label", "name"])
        ]

    def __str__(self) -> str:
        return self.name
