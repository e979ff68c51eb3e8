"""The audit trail: what staff do, and the hash chain that shows whether a record was changed."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from audit_trail import acts
from audit_trail.acts import Act
from audit_trail.note_models import Note  # noqa: F401 (a model of this app)
from core.database.columns import CausedRow, KeyedRow, check
from core.database.triggers import append_only, no_truncate

FORM_CONSTRAINT = "auditrecord_once_per_form"


class AuditRecord(CausedRow):
    """One act of a member of staff, or of a command that does what staff do.

    `before` and `after` have the changed fields: amounts in satang, times in UTC, never a secret. The key is
    not the order of commits: the order is that of `ChainLink`.
    """

    # The clock of the database, because the chain compares times of several processes.
    created_at = models.DateTimeField(db_default=Now(), verbose_name=_("time"))
    act = models.CharField(max_length=40, choices=acts.choices, verbose_name=_("act"))
    object_type = models.CharField(max_length=80)  # The model, such as refunds.refund.
    object_id = models.CharField(max_length=200, db_collation="C")
    merchant_id = models.CharField(max_length=31, blank=True, default="")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    reason = models.TextField(blank=True, default="", verbose_name=_("reason"))
    address = models.CharField(max_length=64, blank=True, default="")  # the client's IP address
    session = models.CharField(max_length=16, blank=True, default="")  # a digest that tells sessions apart

    # Of the form that staff sent: a second click records nothing.
    form_token = models.UUIDField(null=True, editable=False)

    class Meta:
        verbose_name, verbose_name_plural = _("audit record"), _("audit records")
        default_permissions = ("view",)
        permissions = [
            ("view_personal_data", _("Can see names, accounts and messages of customers")),
            ("export_lists", _("Can download lists and monthly reports as files")),
        ]
        indexes = [
            models.Index(fields=["object_id", "id"], name="auditrecord_of_object"),
            # The pages of objects show what staff did without the views, which may be many.
            models.Index(
                fields=["object_id", "object_type", "id"],
                condition=~Q(act=Act.VIEWED),
                name="auditrecord_changes",
            ),
            models.Index(fields=["object_type", "id"], name="auditrecord_of_type"),
            models.Index(fields=["actor", "id"], name="auditrecord_of_actor"),
            models.Index(fields=["act", "id"], name="auditrecord_of_act"),
            models.Index(fields=["request_id"], name="auditrecord_of_request"),
            models.Index(fields=["merchant_id", "id"], name="auditrecord_of_merchant"),
            models.Index(fields=["created_at"], name="auditrecord_created"),
        ]
        constraints = [models.UniqueConstraint(fields=["form_token"], name=FORM_CONSTRAINT)]
        triggers = [append_only("the audit trail is append-only")]

    def __str__(self) -> str:
        return f"{self.get_act_display()}: {self.object_id}"


class UnchainedRecord(KeyedRow):
    """A record that is not in the chain yet. A trigger adds it in the commit of the record."""

    record: Any = models.OneToOneField(
        AuditRecord, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+"
    )

    class Meta(KeyedRow.Meta):
        verbose_name, verbose_name_plural = _("unchained audit record"), _("unchained audit records")
        triggers = [no_truncate("unchained records wait for their link")]


class ChainLink(models.Model):
    """A record's place in the hash chain. Its hash covers the record and the hash of the link before."""

    number = models.BigIntegerField(primary_key=True)
    record: Any = models.OneToOneField(AuditRecord, on_delete=models.PROTECT, related_name="link")
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        verbose_name, verbose_name_plural = _("chain link"), _("chain links")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["previous_hash"], name="chainlink_one_successor"),
            check("chainlink_number_positive", Q(number__gte=1)),
        ]
        triggers = [append_only("the chain of the audit trail is append-only")]

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"
