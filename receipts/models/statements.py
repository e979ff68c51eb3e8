"""Statement files of banks and each of their lines, kept as they were."""

from django.db import models
from django.db.models import Q

from core import vault
from core.columns import PublicIdKey
from receipts.models.receipts import Kind, Receipt


class Statement(models.Model):
    """A file that was imported, also if all of it was known already."""

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    name = models.CharField(max_length=255, help_text="Of the file.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file, in hex.")
    imported_by = models.CharField(max_length=150)
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    created_at = models.DateTimeField()
    total = models.IntegerField(help_text="Lines of the file that speak of money, or should.")
    done = models.IntegerField(default=0, help_text="Lines that are stored.")
    known = models.IntegerField(default=0, help_text="Lines that were stored before, by another import.")
    complaints = models.TextField(blank=True, default="", help_text="What is wrong with the file as a whole.")
    ended_at = models.DateTimeField(null=True, help_text="Null: it was interrupted; import it again.")

    class Meta:
        permissions = [("import_statement", "Can import statement files of banks")]
        indexes = [models.Index(fields=["-created_at"], name="statement_newest_first")]

    def __str__(self) -> str:
        return str(self.name)


class LineResult(models.TextChoices):
    ATTACHED = "attached"  # told before: the same money as a receipt
    NEW = "new"  # told by nobody else: it made a receipt
    UNREADABLE = "unreadable"  # waits for staff


class StatementLine(models.Model):
    """A line, known by bank, account, day, content and how often that content came in the file before.

    The account is the biller id, which files of every format tell.
    """

    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="lines")
    number = models.IntegerField(help_text="In its file, from 1.")
    bank = models.CharField(max_length=20)
    account = models.CharField(max_length=20)
    day = models.DateField(null=True, help_text="The bank's, in Bangkok. Null where it cannot be read.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the line, in hex.")
    occurrence = models.IntegerField(default=1)
    line_sealed = models.TextField(editable=False)
    result = models.CharField(max_length=10, choices=LineResult.choices)
    why = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="It waits for staff: what is wrong."
    )
    kind = models.CharField(max_length=8, choices=Kind.choices, blank=True, default="")
    reference1 = models.CharField(max_length=35, blank=True, default="", db_default="")
    amount = models.BigIntegerField(null=True, help_text="Satang.")
    paid_at = models.DateTimeField(null=True)
    receipt = models.OneToOneField(
        Receipt, on_delete=models.PROTECT, null=True, related_name="statement_line"
    )

    class Meta:
        indexes = [
            models.Index(fields=["bank", "day"], name="statementline_of_day"),
            models.Index(
                fields=["reference1", "amount", "account", "bank"],
                condition=Q(kind="credit"),
                name="statementline_of_credit",
            ),
            models.Index(
                fields=["statement"], condition=Q(result="unreadable"), name="statementline_for_staff"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["digest", "occurrence", "bank", "account", "day"],
                name="statementline_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(result__in=LineResult.values), name="statementline_result_known"
            ),
            models.CheckConstraint(
                condition=Q(result__in=["attached", "new"], receipt__isnull=False)
                | Q(result="unreadable", receipt__isnull=True),
                name="statementline_receipt_iff_joined",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.statement_id} line {self.number}"

    @property
    def context(self) -> str:
        """What the line is sealed with: fixed before the row has an id."""
        return f"{self.statement_id}:{self.number}"

    @property
    def line(self) -> bytes:
        """As it was in the file. Sealed as latin-1 text, which holds any bytes."""
        return vault.open_sealed(self.line_sealed, context=self.context).encode("latin-1")
