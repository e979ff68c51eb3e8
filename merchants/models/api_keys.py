"""API keys."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models

from core.database import triggers
from core.database.columns import PublicIdKey, check
from core.http.scopes import Scope
from merchants.models.merchants import Merchant

MAX_SEEN_NETWORKS = 20


def all_scopes() -> list[str]:
    return list(Scope.values)


class ApiKey(models.Model):
    """A secret key; only its SHA-256 is stored. `public_id` is the part that may be shown.

    A trigger protects the fields of an issued key. Only its end and its use change later.
    """

    id = PublicIdKey()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="keys")
    public_id = models.CharField(max_length=8)
    digest = models.BinaryField(unique=True, editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    scopes = ArrayField(models.CharField(max_length=20, choices=Scope.choices), default=all_scopes)
    # Networks from which the key may be used; none means any.
    networks = ArrayField(models.CharField(max_length=43), default=list, blank=True)
    # The last networks from which it was used, MAX_SEEN_NETWORKS of them.
    seen_networks = ArrayField(models.CharField(max_length=43), default=list, blank=True)
    issued_by = models.CharField(max_length=160, blank=True, default="")  # who issued it
    revoked_by = models.CharField(max_length=160, blank=True, default="")  # who revoked it

    class Meta:
        triggers = [
            triggers.keep_rows("an API key is revoked, never deleted"),
            triggers.ReadOnly(
                "an API key keeps what it was issued with",
                exclude=["expires_at", "revoked_at", "revoked_by", "last_used_at", "seen_networks"],
                is_forbidden=True,
            ),
            triggers.Refuse(
                "stays_revoked",
                triggers.UPDATE,
                "a revoked API key stays revoked",
                condition="OLD.revoked_at IS NOT NULL "
                "AND (OLD.revoked_at, OLD.revoked_by) IS DISTINCT FROM (NEW.revoked_at, NEW.revoked_by)",
                is_forbidden=True,
            ),
            triggers.Refuse(
                "expires_no_later",
                triggers.UPDATE,
                "an API key never expires later than it was to",
                condition=(
                    "OLD.expires_at IS NOT NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > "
                    "OLD.expires_at)"
                ),
                is_forbidden=True,
            ),
        ]
        verbose_name, verbose_name_plural = "API key", "API keys"
        permissions = [
            ("issue_key", "Can issue API keys"),
            ("issue_withdrawal_key", "Can issue API keys that can withdraw"),
            ("roll_key", "Can replace API keys"),
            ("revoke_key", "Can revoke API keys"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["public_id"], name="api_key_public_id_unique"),
            check("api_key_scopes_known", models.Q(scopes__contained_by=Scope.values, scopes__len__gte=1)),
            check("api_key_seen_networks_limited", models.Q(seen_networks__len__lte=MAX_SEEN_NETWORKS)),
            check(
                "api_key_revoked_by_if_revoked", models.Q(revoked_by="") | models.Q(revoked_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_id}..."

    def is_usable(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
