"""Payments of which their bank is asked, when next, and what it answered."""

from django.db import models
from django.db.models import Q

from merchants.models import Merchant
from payments.models import Payment


class Said(models.TextChoices):
    FOUND = "found"
    NOTHING = "nothing"  # nobody has paid
    NO_ANSWER = "no_answer"
    UNREADABLE = "unreadable"  # kept for staff


class Inquiry(models.Model):
    """A payment that its bank is asked about; made only for those that stay pending for some seconds."""

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="inquiry"
    )
    bank = models.CharField(max_length=20)
    step = models.SmallIntegerField(default=0, help_text="Entry of the schedule that is due next.")
    due_at = models.DateTimeField(null=True, help_text="Null: it is over.")
    is_fresh = models.BooleanField(default=True, db_default=True, help_text="Somebody may wait at the till.")
    lease_until = models.DateTimeField(null=True, help_text="A worker has it until then.")
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "inquiries"
        indexes = [
            models.Index(
                fields=["bank", "is_fresh", "due_at"],
                condition=Q(due_at__isnull=False),
                name="inquiry_due_by_lane",
            )
        ]

    def __str__(self) -> str:
        return str(self.payment_id)

    @property
    def merchant_id(self) -> str:
        """At whose bank."""
        return str(self.payment.merchant_id)


class Turn(models.Model):
    """A bank's turn to be asked: one sweep has it at a time, and keeps to what the bank takes a second."""

    bank = models.CharField(max_length=20, primary_key=True)
    free_at = models.DateTimeField(
        help_text="By the database's clock; while it is being asked, the end of a lease."
    )
    rounds = models.IntegerField(default=0, db_default=0, help_text="So far.")
    silences = models.IntegerField(default=0, help_text="Rounds in a row without any answer.")

    def __str__(self) -> str:
        return str(self.bank)


class Rest(models.Model):
    """A merchant about whose payments the bank does not answer: until then it is not asked about them."""

    bank = models.CharField(max_length=20)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    silences = models.IntegerField(help_text="Rounds in a row without any answer.")
    until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["bank", "merchant"], name="rest_one_of_merchant")]

    def __str__(self) -> str:
        return f"{self.bank} {self.merchant_id}"


class InquiryAnswer(models.Model):
    """One question to a bank and what came of it. Append-only; the words of the bank are notices."""

    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="inquiry_answers", db_index=False
    )
    said = models.CharField(max_length=10, choices=Said.choices)
    found = models.SmallIntegerField(default=0, help_text="How many movements of money.")
    took_ms = models.IntegerField()
    at = models.DateTimeField()
    request_id = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="Of the task or request that asked."
    )

    class Meta:
        indexes = [models.Index(fields=["payment", "at"], name="inquiryanswer_of_payment")]
        constraints = [
            models.CheckConstraint(condition=Q(said__in=Said.values), name="inquiryanswer_said_known")
        ]

    def __str__(self) -> str:
        return f"{self.payment_id} {self.said}"


class Enrolment(models.Model):
    """How far the search for payments to ask about has come: one row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    created_before = models.DateTimeField(help_text="Older payments have been looked at.")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="enrolment_is_one_row")]

    def __str__(self) -> str:
        return str(self.created_before)
