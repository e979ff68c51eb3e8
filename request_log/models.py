"""The request log: what each merchant asked of the API lately."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.database.columns import PublicId, PublicIdKey


class Idempotency(models.TextChoices):
    NONE = "", _("without a key")
    FIRST = "first", _("first with its key")
    REPLAYED = "replayed", _("answered from the first")


class RequestRecord(models.Model):
    """One request with a valid key, and its answer. Ids sort by time. Old months are dropped.

    Secrets are left out, and names and account numbers are masked (`request_log.redaction`).
    """

    id = PublicIdKey()
    # Without a foreign key, whose check would cost as much as the row.
    merchant_id = PublicId()
    created_at = models.DateTimeField(verbose_name=_("time"), help_text=_("When the request ended."))
    key_id = models.CharField(_("key"), max_length=16, blank=True, help_text=_("The public part of the key."))
    method = models.CharField(_("method"), max_length=8)
    route = models.CharField(_("route"), max_length=120, help_text=_("The path with names for its ids."))
    path = models.CharField(_("path"), max_length=500)
    status = models.SmallIntegerField(_("status"))
    error_code = models.CharField(_("error code"), max_length=60, blank=True)
    duration_ms = models.IntegerField(_("milliseconds"))
    idempotency = models.CharField(_("idempotency"), max_length=8, choices=Idempotency.choices, blank=True)
    request_id = models.CharField(_("request id"), max_length=64, db_collation="C")
    payment_id = PublicId(
        verbose_name=_("payment"), blank=True, help_text=_("The payment that the request is about.")
    )
    address = models.CharField(_("address"), max_length=64, blank=True)
    request_body = models.TextField(blank=True, editable=False)
    response_body = models.TextField(blank=True, editable=False)

    class Meta:
        verbose_name, verbose_name_plural = _("API request"), _("API requests")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["merchant_id", "created_at", "id"], name="requestrecord_of_merchant"),
            models.Index(fields=["request_id", "merchant_id"], name="requestrecord_of_request"),
            models.Index(
                fields=["payment_id", "created_at", "id"],
                name="requestrecord_of_payment",
                condition=~models.Q(payment_id=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.route} {self.status}"
