"""Heartbeats, reports of processes, nightly jobs, the check of the encryption keys, signed closes."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.database.columns import KeyedRow, PublicId, PublicIdKey, check, known
from core.database.triggers import INSERT, ReadOnly, Refuse, append_only, keep_rows


class Heartbeat(KeyedRow):
    """The last heartbeat of `beat`, or of the workers of a queue."""

    name = models.CharField(max_length=20, primary_key=True)
    recorded_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)


class Measurement(KeyedRow):
    """How often something happened in total, and how long it took. All processes add to these rows.

    `bucket` is a place in `core.observing.measurements.BOUNDS`, or one more.
    """

    name = models.CharField(max_length=20)
    labels = models.CharField(max_length=250)  # values of the labels, as a JSON list
    bucket = models.SmallIntegerField()
    count = models.BigIntegerField()
    seconds = models.FloatField()

    class Meta(KeyedRow.Meta):
        constraints = [
            models.UniqueConstraint(fields=["name", "labels", "bucket"], name="measurement_once_per_bucket")
        ]


class ProcessReport(KeyedRow):
    """What a running process last said of itself; see `operations.metrics.process_reports`."""

    host = models.CharField(max_length=64)
    pid = models.IntegerField()
    process = models.CharField(max_length=40)  # such as web-0, worker or beat
    version = models.CharField(max_length=40)
    started_at = models.DateTimeField()
    reported_at = models.DateTimeField()
    memory_bytes = models.BigIntegerField()
    open_files = models.IntegerField()
    max_files = models.BigIntegerField()
    processor_seconds = models.FloatField()

    class Meta(KeyedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["host", "pid"], name="processreport_once")]


class NightlyJob(models.TextChoices):
    """In the order of their hours."""

    DAILY_CLOSE = "daily_close", _("Close of the day")
    AUDIT = "audit", _("Audit of the books")
    RETENTION = "retention", _("Deletion of old rows")
    IMPORT_STATEMENTS = "import_statements", _("Import of statements")
    RECONCILE = "reconcile", _("Comparison with the banks")
    ANONYMISE = "anonymise", _("Erasure of personal data")


class JobResult(models.TextChoices):
    """How a run ended. Only `completed` needs nobody."""

    COMPLETED = "completed", _("Completed")
    DIFFERENCES = "differences", _("Differences found")
    FAILED = "failed", _("Failed")
    NOT_ENDED = "not_ended", _("Not ended")


class JobRunQuerySet(models.QuerySet["JobRun"]):
    def with_result(self, result: JobResult) -> Self:
        if result == JobResult.NOT_ENDED:
            return self.filter(ended_at__isnull=True)
        ended = self.filter(ended_at__isnull=False)
        if result == JobResult.FAILED:
            return ended.exclude(error="")
        differs = Q(differences__gt=0)
        return ended.filter(differs if result == JobResult.DIFFERENCES else ~differs, error="")

    def newest_of_each_job(self) -> Self:
        newest = JobRun.objects.order_by("job", "-started_at", "-pk").distinct("job")
        return self.filter(pk__in=newest.values("pk"))


class JobRun(models.Model):
    """A run of a nightly job: of a day in Bangkok, or by a command. See `operations.nightly.runs`."""

    job = models.CharField(max_length=20, choices=NightlyJob.choices, verbose_name=_("job"))
    day = models.DateField(null=True, verbose_name=_("day"))  # null: a command
    attempts = models.SmallIntegerField(default=0, verbose_name=_("attempts"))
    started_at = models.DateTimeField(verbose_name=_("began"))
    lease_until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, verbose_name=_("ended"))
    seconds = models.FloatField(null=True, verbose_name=_("duration"))
    differences = models.IntegerField(null=True, verbose_name=_("differences"))
    # Why it did not run to its end.
    error = models.CharField(max_length=60, blank=True, verbose_name=_("error"))

    objects = JobRunQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = _("nightly job"), _("nightly jobs")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["job", "-started_at"], name="jobrun_newest_of_job"),
            models.Index(
                fields=["lease_until"], condition=Q(lease_until__isnull=False), name="jobrun_leased"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["job", "day"], name="jobrun_once_a_day"),
            known("job", NightlyJob, name="jobrun_job_known"),
        ]

    def __str__(self) -> str:
        return f"{self.job} {self.day or self.started_at}"

    @property
    def result(self) -> JobResult:
        if self.ended_at is None:
            return JobResult.NOT_ENDED
        if self.error:
            return JobResult.FAILED
        return JobResult.DIFFERENCES if self.differences else JobResult.COMPLETED


class EncryptionKeyCheck(KeyedRow):
    """A text that only the keys of this database open, see `operations.data_protection.resealing`."""

    ONLY = 1

    id = models.SmallIntegerField(primary_key=True, default=ONLY)
    text_sealed = models.TextField(editable=False)

    class Meta(KeyedRow.Meta):
        constraints = [check("encryption_key_check_single_row", Q(id=1))]


class ErasureCursor(KeyedRow):
    """Where the nightly erasure of personal data goes on: one row."""

    ONLY = 1

    id = models.SmallIntegerField(primary_key=True, default=ONLY)
    last_id = PublicId()  # the bank transaction that was looked at last

    class Meta(KeyedRow.Meta):
        constraints = [check("erasurecursor_single_row", Q(id=1))]


class WaitingErasure(KeyedRow):
    """A bank transaction whose payer is still needed. The nightly job looks at it again."""

    # Without a foreign key: the books must not need this row.
    bank_transaction_id = PublicIdKey()


class SignedClose(models.Model):
    """Signed totals of a day or a month in Bangkok time. Each one contains the hash of the one before."""

    number = models.BigIntegerField(primary_key=True)
    body = models.TextField()  # the JSON that is signed, byte by byte
    hash = models.CharField(max_length=64)
    previous_hash = models.CharField(max_length=64, blank=True)
    signature = models.CharField(max_length=88)  # Ed25519, in base64
    public_key = models.CharField(max_length=44)

    class Meta:
        abstract = True
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["previous_hash"], name="%(class)s_one_successor"),
            check("%(class)s_number_positive", Q(number__gte=1)),
        ]


class DailyClose(SignedClose):
    day = models.DateField(unique=True, verbose_name=_("day"))

    class Meta(SignedClose.Meta):
        verbose_name, verbose_name_plural = _("daily close"), _("daily closes")
        triggers = [append_only("a daily close is never changed")]

    def __str__(self) -> str:
        return str(self.day)


class EvidenceSeal(KeyedRow):
    """The signed root of what a day did to the payments of one merchant.

    It has no totals of others, so the merchant can show it. `operations/sql` compares it with the close and
    with each payment.
    """

    id = PublicIdKey(max_length=52)  # the number of the close, a colon, and the merchant
    close = models.ForeignKey(DailyClose, on_delete=models.PROTECT, related_name="seals")
    body = models.TextField()  # the JSON that is signed, byte by byte
    signature = models.CharField(max_length=88)  # Ed25519, in base64
    count = models.IntegerField()  # how many payments
    nodes = models.BinaryField()  # The hash tree, see `operations.audit.daily_close.hash_tree`.

    class Meta(KeyedRow.Meta):
        permissions = [("view_evidence", "Can download the evidence of payments")]
        triggers = [append_only("a seal is never changed")]
        constraints = [check("evidenceseal_of_payments", Q(count__gte=1))]


class ProofDay(KeyedRow):
    """What the public proof page of a merchant says of a day, signed. See `proofs` of the daily close."""

    pk = models.CompositePrimaryKey("merchant_id", "day")
    # Without a foreign key: a close locks no merchants.
    merchant_id = PublicId()
    day = models.DateField()
    close = models.ForeignKey(DailyClose, on_delete=models.PROTECT, related_name="proofs")
    body = models.TextField()  # the JSON that is signed, byte by byte
    signature = models.CharField(max_length=88)  # Ed25519, in base64

    class Meta(KeyedRow.Meta):
        triggers = [
            append_only("what a proof page said never changes"),
            Refuse(
                "is_of_its_row",
                INSERT,
                "a proof is of its merchant and its close",
                condition="NEW.body::jsonb ->> 'merchant_id' IS DISTINCT FROM NEW.merchant_id OR "
                "NEW.body::jsonb ->> 'day' IS DISTINCT FROM to_char(NEW.day, 'YYYY-MM-DD') OR "
                "NEW.body::jsonb #>> '{close,number}' IS DISTINCT FROM NEW.close_id::text",
            ),
        ]


class PaymentEvidence(KeyedRow):
    """What was known of a payment when a day was closed on which something happened to it."""

    seal = models.ForeignKey(EvidenceSeal, on_delete=models.PROTECT, related_name="payments", db_index=False)
    number = models.IntegerField()  # its leaf in the hash tree, from 0
    # Without a foreign key: a close locks no payments.
    payment_id = PublicId()
    text = models.TextField()  # The JSON of the payment. Personal data is hashed.
    # Of the salts. Without it nobody can try names and accounts.
    seed_sealed = models.TextField(editable=False, blank=True)

    class Meta(KeyedRow.Meta):
        triggers = [
            keep_rows("what was sealed is never deleted"),
            ReadOnly("what was sealed never changes", erasable=["seed_sealed"], is_forbidden=True),
        ]
        constraints = [
            models.UniqueConstraint(fields=["seal", "number"], name="paymentevidence_one_leaf"),
            models.UniqueConstraint(fields=["payment_id", "seal"], name="paymentevidence_once_a_day"),
        ]

    @property
    def context(self) -> str:
        return f"{self.payment_id}:{self.seal_id}"


class MonthClose(SignedClose):
    """No entry is posted in a closed month any more, and months are closed in order (`operations/sql`)."""

    month = models.DateField(unique=True, verbose_name=_("month"))  # the first day

    class Meta(SignedClose.Meta):
        verbose_name, verbose_name_plural = _("month"), _("months")
        permissions = [("close_month", "Can close months")]
        triggers = [append_only("the close of a month is never changed")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"
