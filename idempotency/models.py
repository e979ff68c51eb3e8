"""A request that was made under a key, and its answer."""

from django.db import models

from core.columns import PublicId
from merchants.models import Merchant

IN_PROGRESS = 0
"""The status of a key whose request was begun and not answered yet."""


class IdempotencyKey(models.Model):
    """Written in the same commit as what the request did; `expires_at` alone says whether it still counts.

    A request that commits twice writes it in the first, under way, with the subject that it is about.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.CharField(max_length=255, db_collation="C")
    fingerprint = models.BinaryField(help_text="HMAC-SHA256 of method, route and body.")
    status = models.SmallIntegerField()
    body_sealed = models.BinaryField(editable=False, help_text="The answer, byte for byte.")
    subject_id = PublicId(
        blank=True, default="", db_default="", help_text="What a request that commits twice is about."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name, verbose_name_plural = "idempotency key", "idempotency keys"
        constraints = [
            models.UniqueConstraint(fields=["key", "merchant"], name="idempotency_key_once_per_merchant")
        ]

    def __str__(self) -> str:
        return self.key
