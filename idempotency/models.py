"""Idempotency keys, with the request and its response."""

from django.db import models

from core.database.columns import KeyedRow, PublicId
from merchants.models import Merchant

IN_PROGRESS = 0  # the status of a key whose request has no response yet
REFUSED = -1
"""The status of a key whose request was refused after validation. Only the same request may use it."""


class IdempotencyKey(KeyedRow):
    """A key, written in the same commit as the effects of its request. `KeyedRequest.expires_at` is its end.

    A request with two commits writes it in the first, in progress and with its subject.
    """

    pk = models.CompositePrimaryKey("key", "merchant_id")
    # Nothing checks that the merchant exists: only its requests find the row, and a day later it is deleted.
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    key = models.CharField(max_length=255, db_collation="C")
    fingerprint = models.BinaryField()  # HMAC-SHA256 of method, route and body
    status = models.SmallIntegerField()
    body_sealed = models.BinaryField(editable=False)  # the response, byte for byte
    subject_id = PublicId(blank=True, default="", db_default="")  # the subject of a request with two commits
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
