"""Statement files of banks, and their lines as they were."""

from django.db import models
from django.db.models import Q

from core import vault
from core.database import triggers
from core.database.columns import CausedRow, KeyedRow, PublicId, PublicIdKey, check, known
from core.work.background_jobs import OPEN_STATES, BackgroundJob, JobState
from ledger.services import Fee
from reconciliation.models.bank_transactions import BankTransaction, BankTransactionKind


class Statement(CausedRow):
    """A file that was imported, even if all its lines were imported before."""

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    file_name = models.CharField(max_length=255)  # name of the uploaded file
    file_sha256 = models.CharField(max_length=64)  # SHA-256 of the file, in hex
    created_at = models.DateTimeField()
    line_count = models.IntegerField()  # lines of the file, without headers and trailers
    stored_count = models.IntegerField(default=0)  # lines that are stored
    duplicate_count = models.IntegerField(default=0)  # lines that were stored before, by another import
    # Fees that it named of lines that another import had stored.
    fee_count = models.IntegerField(default=0, db_default=0)
    problems = models.TextField(blank=True, default="")  # what is wrong with the file as a whole
    completed_at = models.DateTimeField(null=True)  # null: it runs or was interrupted
    # Its lines are gone. A later import can bring them again.
    undone_at = models.DateTimeField(null=True, verbose_name="undone at")

    class Meta:
        triggers = [
            triggers.keep_rows("a statement is never deleted"),
            triggers.ReadOnly(
                "a statement never changes",
                exclude=[
                    *("stored_count", "duplicate_count", "fee_count", "problems", "completed_at", "undone_at")
                ],
                is_forbidden=True,
            ),
            triggers.Refuse(
                "final",
                triggers.UPDATE,
                "a completed import never changes",
                # Only its undo, once.
                condition="OLD.completed_at IS NOT NULL AND (OLD.undone_at IS NOT NULL "
                "OR NEW.undone_at IS NULL OR to_jsonb(NEW) - 'undone_at' <> to_jsonb(OLD) - 'undone_at')",
                is_forbidden=True,
            ),
        ]
        constraints = [
            check("statement_has_actor", ~Q(actor="")),
            check(
                "statement_undone_after_its_end",
                Q(undone_at__isnull=True) | Q(completed_at__isnull=False, fee_count=0),
            ),
        ]
        permissions = [("import_statement", "Can import statement files of banks")]
        indexes = [models.Index(fields=["created_at"], name="statement_newest_first")]

    def __str__(self) -> str:
        return str(self.file_name)


class StatementImport(BackgroundJob):
    """The import of an uploaded file by a worker; see `reconciliation.statements.import_jobs`."""

    statement = models.OneToOneField(
        Statement, on_delete=models.PROTECT, primary_key=True, related_name="background_import"
    )

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(state__in=OPEN_STATES), name="statementimport_open"
            )
        ]
        constraints = [known("state", JobState, name="statementimport_state_known")]


class StatementUpload(CausedRow):
    """A file whose import nobody has begun yet: staff see first what was understood. Kept for an hour."""

    id = PublicIdKey()  # that of the statement, if the import begins
    bank = models.CharField(max_length=20)
    file_name = models.CharField(max_length=255)
    file_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    line_count = models.IntegerField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["created_at"], name="statementupload_by_age")]


class StatementPart(KeyedRow):
    """A part of an uploaded file, compressed and sealed, until its import ends."""

    statement_id = PublicId()  # the upload, and the statement once the import begins
    number = models.IntegerField()
    content_sealed = models.TextField(editable=False)

    class Meta(KeyedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["statement_id", "number"], name="statementpart_once")]

    @property
    def context(self) -> str:
        """The context of the encryption."""
        return f"{self.statement_id}:part:{self.number}"


class LineResult(models.TextChoices):
    ATTACHED = "attached"  # the bank transaction was known before
    NEW = "new"  # it created a bank transaction
    UNREADABLE = "unreadable"  # an exception


class StatementLine(models.Model):
    """A line, known by bank, biller id, date, content and how often that content came in the file before.

    Files of every format report the biller id.
    """

    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="lines")
    line_number = models.IntegerField()  # in its file, from 1
    bank = models.CharField(max_length=20)
    biller_id = models.CharField(max_length=20)
    bank_date = models.DateField(null=True)  # The bank's, in Bangkok. Null where it cannot be read.
    line_sha256 = models.CharField(max_length=64)  # SHA-256 of the line, in hex
    occurrence = models.IntegerField(default=1)
    line_sealed = models.TextField(editable=False)
    result = models.CharField(max_length=10, choices=LineResult.choices)
    # Why the line cannot be read.
    error = models.CharField(max_length=200, blank=True, default="", db_default="")
    kind = models.CharField(max_length=8, choices=BankTransactionKind.choices, blank=True, default="")
    reference1 = models.CharField(max_length=35, blank=True, default="", db_default="")
    amount = models.BigIntegerField(null=True)  # satang
    # Satang that the bank keeps, without VAT. Null: no file names it.
    fee = models.BigIntegerField(null=True)
    fee_vat = models.BigIntegerField(null=True, verbose_name="VAT of the fee")  # satang
    # A payment is to be compared with this fee.
    is_fee_due = models.BooleanField(default=False, db_default=False)
    paid_at = models.DateTimeField(null=True)
    bank_transaction = models.OneToOneField(
        BankTransaction, on_delete=models.PROTECT, null=True, related_name="statement_line"
    )

    class Meta:
        triggers = [
            # A line goes with its import only: see `sql/undo.sql`.
            triggers.no_truncate("a line of a statement is never deleted"),
            triggers.ReadOnly(
                "a line of a statement never changes",
                exclude=["result", "bank_transaction", "fee", "fee_vat", "is_fee_due"],
                erasable=["line_sealed"],
                is_forbidden=True,
            ),
            # A later export of the same day may be the first one that names it.
            triggers.set_once("fee", "a line of a statement keeps its fee"),
            triggers.set_once("fee_vat", "a line of a statement keeps its fee"),
            triggers.Refuse(
                "fee_due_once",
                triggers.UPDATE,
                "a fee is compared with its payment once",
                condition="NEW.is_fee_due AND NOT OLD.is_fee_due AND OLD.fee IS NOT NULL",
            ),
            triggers.Refuse(
                "matched_once",
                triggers.UPDATE,
                "a line of a statement is matched once",
                condition=(
                    "OLD.result <> '' AND (NEW.result, NEW.bank_transaction_id) IS DISTINCT FROM "
                    "(OLD.result, OLD.bank_transaction_id)"
                ),
            ),
        ]
        indexes = [
            models.Index(fields=["bank", "bank_date"], name="statementline_of_day"),
            models.Index(
                fields=["reference1", "amount", "biller_id", "bank"],
                condition=Q(kind="credit"),
                name="statementline_of_credit",
            ),
            models.Index(
                fields=["statement"], condition=Q(result="unreadable"), name="statementline_unreadable"
            ),
            models.Index(fields=["id"], condition=Q(is_fee_due=True), name="statementline_fee_due"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["line_sha256", "occurrence", "bank", "biller_id", "bank_date"],
                name="statementline_once",
                nulls_distinct=False,
            ),
            known("result", LineResult, name="statementline_result_known"),
            check(
                "statementline_bank_transaction_iff_read",
                Q(result__in=["attached", "new"], bank_transaction__isnull=False)
                | Q(result="unreadable", bank_transaction__isnull=True),
            ),
            check(
                "statementline_fee_within_amount",
                Q(fee__isnull=True, fee_vat__isnull=True, is_fee_due=False)
                | Q(fee__isnull=False, fee_vat__isnull=False, amount__isnull=False)
                & Q(fee__gte=0, fee_vat__gte=0, fee__lte=models.F("amount") - models.F("fee_vat")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.statement_id} line {self.line_number}"

    @property
    def context(self) -> str:
        """The context of the encryption: known before the row has an id."""
        return f"{self.statement_id}:{self.line_number}"

    @property
    def named_fee(self) -> Fee:
        """What the bank keeps, of a line that names it."""
        return Fee(self.fee or 0, self.fee_vat or 0, self.bank)

    @property
    def line(self) -> bytes:
        """The bytes of the line in the file, none if they were erased. They are sealed as latin-1 text."""
        sealed = self.line_sealed
        return vault.open_sealed(sealed, context=self.context).encode("latin-1") if sealed else b""
