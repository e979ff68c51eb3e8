"""QR codes. Money finds its payment by the reference of the code."""

from django.db import models

from core import ids
from core.database import triggers
from core.database.columns import KeyedRow
from merchants.models import Merchant
from payments.models import Payment, PaymentStatus

MAX_EXPIRY = 1440  # minutes


class QrCode(KeyedRow):
    """The QR code of a payment, which has its status and expiry. `reference1` is never used again."""

    # A trigger checks both (`sql/rules.sql`).
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="qr_code", db_constraint=False
    )
    bank = models.CharField(max_length=20)  # The bank of the biller id. The money of the code comes there.
    biller_id = models.CharField(max_length=15)
    # The expired or declined code in whose place a payer asked for this one.
    replaces = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    reference1 = models.CharField(max_length=20)
    qr_data = models.CharField(max_length=512)
    created_at = models.DateTimeField()
    # The actor who expired it early. Empty if it expired at expires_at.
    actor = models.CharField(max_length=160, blank=True, default="", db_default="")
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        verbose_name, verbose_name_plural = "QR code", "QR codes"
        permissions = [("expire_qrcode", "Can expire QR codes")]
        triggers = [
            triggers.keep_rows("a QR code is never deleted"),
            triggers.ReadOnly("a QR code never changes", exclude=["actor", "request_id"], is_forbidden=True),
            triggers.set_once("actor", "a QR code keeps who expired it", is_text=True, is_forbidden=True),
            triggers.set_once(
                "request_id", "a QR code keeps who expired it", is_text=True, is_forbidden=True
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["reference1"], name="qr_code_reference_unique"),
            models.UniqueConstraint(
                fields=["replaces"], condition=models.Q(replaces__isnull=False), name="qr_code_replaced_once"
            ),
        ]

    @property
    def id(self) -> str:
        return ids.of_code(self.payment_id)


def word_of(status: str) -> str:
    """What the picture of a code that cannot be paid shows. A failed payment looks like an expired one."""
    return "paid" if status in (PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED) else "expired"
