"""The request log: what each merchant asked of the API lately."""

from typing import Any, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from core import ids
from core.database.columns import PublicId, PublicIdKey
from core.request_context import REQUEST_ID_PREFIX
from request_log import bodies

PREFIX = "rlg_"
PAYMENT = "<str:payment_id>"
# Of the partial indexes. Queries repeat them, or PostgreSQL does not use these indexes.
HAS_PAYMENT, HAS_REQUEST_ID = ~models.Q(payment_id=""), ~models.Q(request_id="")


class Idempotency(models.TextChoices):
    NONE = "", _("without a key")
    FIRST = "first", _("first with its key")
    REPLAYED = "replayed", _("answered from the first")


class RequestRecord(models.Model):
    """One request with a valid key, and its answer. Ids sort by time. Old months are dropped.

    Secrets are left out, and names and account numbers are masked (`request_log.redaction`). The row does not
    repeat itself: `from_db` fills in what other columns say.
    """

    id = PublicIdKey()
    # Without a foreign key, whose check would cost as much as the row.
    merchant_id = PublicId()
    created_at = models.DateTimeField(verbose_name=_("time"))  # when the request began
    key_id = models.CharField(_("key"), max_length=16, blank=True)  # its public part
    method = models.CharField(_("method"), max_length=8)
    route = models.CharField(_("route"), max_length=120)  # the path with names for its ids
    # Stored only if it is not the route with the id of the payment.
    path = models.CharField(_("path"), max_length=500, blank=True)
    status = models.SmallIntegerField(_("status"))
    error_code = models.CharField(_("error code"), max_length=60, blank=True)
    duration_ms = models.IntegerField(_("milliseconds"))
    idempotency = models.CharField(_("idempotency"), max_length=8, choices=Idempotency.choices, blank=True)
    # Stored only if the client gave it. Ours has the characters of `id`.
    request_id = models.CharField(_("request id"), max_length=64, blank=True, db_collation="C")
    payment_id = PublicId(verbose_name=_("payment"), blank=True)  # the payment that the request is about
    address = models.CharField(_("address"), max_length=64, blank=True)
    bodies = models.BinaryField(_("bodies"), default=b"")

    class Meta:
        verbose_name, verbose_name_plural = _("API request"), _("API requests")
        default_permissions = ("view",)
        indexes = [
            # The list of a merchant, in an order that the primary key does not have: by that, PostgreSQL may
            # read the rows of other merchants. The list of the console and its search go by the primary key.
            models.Index(fields=["merchant_id", "created_at"], name="requestrecord_of_merchant"),
            # GET /requests/{request_id}, and the search of the console.
            models.Index(
                fields=["request_id", "merchant_id"],
                name="requestrecord_of_request",
                condition=HAS_REQUEST_ID,
            ),
            # The filter `payment_id`, the search of the console, and erasure.
            models.Index(
                fields=["payment_id", "created_at"], name="requestrecord_of_payment", condition=HAS_PAYMENT
            ),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.route} {self.status}"

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        record = super().from_db(*args, **kwargs)
        if not record.get_deferred_fields():
            record.path = record.path or record.route.replace(PAYMENT, record.payment_id)
            record.request_id = record.request_id or REQUEST_ID_PREFIX + record.id.removeprefix(PREFIX)
        return record

    @property
    def request_body(self) -> str:
        return bodies.unpack(bytes(self.bodies), self.payment_id)[0]

    @property
    def response_body(self) -> str:
        return bodies.unpack(bytes(self.bodies), self.payment_id)[1]


def id_of_request(request_id: str) -> str:
    """The id of the record, if the service made this id of the request; else no id."""
    is_ours = ids.looks_right(request_id, REQUEST_ID_PREFIX)
    return PREFIX + request_id.removeprefix(REQUEST_ID_PREFIX) if is_ours else ""
