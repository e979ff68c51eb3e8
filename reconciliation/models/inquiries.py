"""Inquiries about payments: when the next is due, the answers, and how often a bank may be asked."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core.database import triggers
from core.database.columns import KeyedRow, PublicId, check, known
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.models.bank_transactions import BankTransaction
from reconciliation.models.notifications import BankNotification


class InquiryOutcome(models.TextChoices):
    FOUND = "found", "The bank reports money"
    NOTHING = "nothing", "The bank reports no money"
    NO_ANSWER = "no_answer", "The bank did not answer"
    UNREADABLE = "unreadable", "The bank's answer could not be read"  # stored as an exception


class DueInquiry(KeyedRow):
    """When a bank is asked next, and which inquiries come first. The bank's rate limit applies to all."""

    bank = models.CharField(max_length=20)
    due_at = models.DateTimeField(null=True)  # null: finished
    is_urgent = models.BooleanField(default=True, db_default=True)  # A payer may be waiting for the result
    lease_until = models.DateTimeField(null=True)  # A worker has claimed it until then
    created_at = models.DateTimeField()

    class Meta:
        abstract = True
        indexes = [
            models.Index(
                fields=["bank", "is_urgent", "due_at"],
                condition=Q(due_at__isnull=False),
                name="%(class)s_priority",
            )
        ]


class Inquiry(DueInquiry):
    """A payment that the bank is asked about. Created only if the payment stays pending for some seconds."""

    # A payment with a code is never deleted, so a foreign key would only lock its row.
    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="inquiry", db_constraint=False
    )
    schedule_index = models.SmallIntegerField(default=0)  # index of the next entry of the schedule

    class Meta(DueInquiry.Meta):
        verbose_name_plural = "inquiries"

    @property
    def merchant_id(self) -> str:
        """The merchant whose bank is asked."""
        return str(self.payment.merchant_id)


class BankRateLimit(KeyedRow):
    """Limits the calls to a bank per second. One worker at a time may call a bank."""

    bank = models.CharField(max_length=20, primary_key=True)
    # When the bank may be called again, by the database's clock. During a batch: the end of the lease.
    available_at = models.DateTimeField()
    # When the bank may be asked about another slip, by the database's clock.
    slips_at = models.DateTimeField(db_default=Now())
    batch_count = models.IntegerField(default=0, db_default=0)  # batches so far
    silent_batches = models.IntegerField(default=0)  # batches in a row without any answer


class Backoff(KeyedRow):
    """Pauses inquiries for one merchant while the bank does not answer about its payments."""

    bank = models.CharField(max_length=20)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    silent_batches = models.IntegerField()  # batches in a row without any answer
    retry_at = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["bank", "merchant"], name="backoff_one_per_merchant")]


class InquiryAnswer(models.Model):
    """What a bank answered about a payment. The same answer again adds to the row, see decision 85.

    The raw answer is stored as a BankNotification. A setting drops old months of payments.
    """

    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="inquiry_answers", db_index=False
    )
    outcome = models.CharField(max_length=10, choices=InquiryOutcome.choices)
    transaction_count = models.SmallIntegerField(default=0)  # how many bank transactions the answer has
    answer_count = models.IntegerField(default=1, db_default=1)  # how often the bank said so in a row
    duration_ms = models.IntegerField()  # of the latest answer
    first_answered_at = models.DateTimeField(null=True)  # null: it was the only answer
    answered_at = models.DateTimeField()  # of the latest answer
    # The task or request that made the latest inquiry.
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        triggers = [
            triggers.keep_rows("an answer of a bank is never deleted"),
            triggers.ReadOnly(
                "an answer of a bank is never changed", fields=["payment", "outcome", "transaction_count"]
            ),
            triggers.Refuse(
                "answers_grow",
                triggers.UPDATE,
                "the same answer of a bank can only come again",
                condition="NEW.answer_count <= OLD.answer_count",
            ),
        ]
        # Without the time, so that an update writes no new entry of the index.
        indexes = [models.Index(fields=["payment"], name="inquiryanswer_of_payment")]
        constraints = [known("outcome", InquiryOutcome, name="inquiryanswer_outcome_known")]

    def __str__(self) -> str:
        return f"{self.payment_id} {self.outcome}"


class ScanCursor(KeyedRow):
    """How far the scan for unconfirmed payments has come: one row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    created_before = models.DateTimeField()  # payments created earlier have been scanned
    # Payments created earlier have been scanned once. A late commit can follow.
    scanned_until = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        constraints = [check("scancursor_single_row", Q(id=1))]


class ConfirmationInquiry(DueInquiry):
    """Asks a bank whether it has this money, until it confirms it or a day has passed.

    The cause is a credit of a statement or an unsigned notification.
    """

    # The merchant whose bank is asked.
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    bank_transaction = models.OneToOneField(
        BankTransaction, on_delete=models.PROTECT, null=True, related_name="confirmation_inquiry"
    )
    notification = models.OneToOneField(
        BankNotification, on_delete=models.PROTECT, null=True, related_name="confirmation_inquiry"
    )
    payment_id = PublicId(null=True)  # the payment that has this reference
    # The bank's id in the notification.
    bank_reference = models.CharField(max_length=64, blank=True, default="")
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=35)
    amount = models.BigIntegerField()  # satang
    paid_at = models.DateTimeField()
    attempts = models.SmallIntegerField(default=0)
    # The latest answer.
    last_outcome = models.CharField(max_length=10, choices=InquiryOutcome.choices, blank=True, default="")
    alerted_at = models.DateTimeField(null=True)  # when it became an exception
    confirmed_at = models.DateTimeField(null=True)

    class Meta(DueInquiry.Meta):
        verbose_name_plural = "confirmation inquiries"
        indexes = [
            *DueInquiry.Meta.indexes,
            models.Index(
                fields=["payment_id"], condition=Q(payment_id__isnull=False), name="confirmation_by_payment"
            ),
        ]
        constraints = [
            check(
                "confirmation_has_one_cause",
                Q(bank_transaction__isnull=False, notification__isnull=True, bank_reference="")
                | Q(bank_transaction__isnull=True, notification__isnull=False) & ~Q(bank_reference=""),
            ),
            check(
                "confirmation_not_due_when_confirmed", Q(confirmed_at__isnull=True) | Q(due_at__isnull=True)
            ),
            models.UniqueConstraint(
                fields=["bank", "bank_reference", "biller_id", "reference1"],
                condition=Q(notification__isnull=False),
                name="confirmation_once_per_notification",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.bank_transaction_id or self.notification_id}"
