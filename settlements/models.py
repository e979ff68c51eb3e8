"""Transfers of acquirers, what each pays out, each merchant's part, and questions about them."""

from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import F, Q

from core import ids
from core.database import triggers
from core.database.columns import KeyedRow, PublicId, PublicIdKey, check, known
from core.database.state_machines import StateMachine
from merchants.models import Merchant
from payments.models import Payment

# From the transfer to the money at our bank: two business days, and a weekend.
ARRIVES_WITHIN = timedelta(days=4)


class AcquirerTransferState(models.TextChoices):
    PENDING = "pending"  # the acquirer will send it
    SENT = "sent"  # its bank has it
    PAID = "paid"  # it arrived
    FAILED = "failed"  # it will not arrive: a later one pays the same money


OPEN_STATES = (AcquirerTransferState.PENDING, AcquirerTransferState.SENT)


class AcquirerTransferQuerySet(models.QuerySet["AcquirerTransfer"]):
    def open(self) -> Self:
        """Those whose money is on the way."""
        return self.filter(state__in=OPEN_STATES)

    def late(self, now: datetime) -> Self:
        """Those whose money should have arrived."""
        return self.open().filter(created_at__lt=now - ARRIVES_WITHIN)


class AcquirerTransfer(StateMachine):
    """Money that an acquirer transfers to our bank account, as it reports it. Amounts are satang."""

    TRANSITIONS = {
        AcquirerTransferState.PENDING: {
            AcquirerTransferState.SENT,
            AcquirerTransferState.PAID,
            AcquirerTransferState.FAILED,
        },
        AcquirerTransferState.SENT: {AcquirerTransferState.PAID, AcquirerTransferState.FAILED},
    }
    STATE_FIELD = "state"

    id = PublicIdKey()
    acquirer = models.CharField(max_length=20)
    transfer_id = models.CharField(max_length=64)  # the acquirer's own id
    amount = models.BigIntegerField()  # satang that leave our balance at the acquirer
    fee = models.BigIntegerField()  # satang: the price of the transfer
    fee_vat = models.BigIntegerField()  # satang: the VAT of this price
    net_amount = models.BigIntegerField()  # satang that arrive at our bank
    state = models.CharField(max_length=7, choices=AcquirerTransferState.choices)
    created_at = models.DateTimeField()  # the acquirer's time
    arrived_at = models.DateTimeField(null=True)  # the acquirer's time
    bank_transaction_id = PublicId(null=True)  # the money as our bank reports it

    objects = AcquirerTransferQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("a transfer of an acquirer is never deleted"),
            triggers.ReadOnly(
                "what the acquirer reported stays", exclude=["state", "arrived_at", "bank_transaction_id"]
            ),
            triggers.set_once("bank_transaction_id", "a transfer keeps where it was seen"),
            triggers.Transitions(),
            triggers.set_once("arrived_at", "a transfer keeps when it arrived"),
        ]
        indexes = [
            # Which transfers are read again, and the list.
            models.Index(fields=["acquirer", "created_at"], name="acquirertransfer_newest"),
            # Which transfer a bank transaction shows.
            models.Index(
                fields=["net_amount"],
                condition=Q(bank_transaction_id__isnull=True, state="paid"),
                name="acquirertransfer_unseen",
            ),
        ]
        constraints = [
            known("state", AcquirerTransferState, name="acquirertransfer_state_known"),
            models.UniqueConstraint(fields=["acquirer", "transfer_id"], name="acquirertransfer_once"),
            models.UniqueConstraint(fields=["bank_transaction_id"], name="acquirertransfer_seen_once"),
            check(
                "acquirertransfer_amounts_add_up",
                Q(amount=F("net_amount") + F("fee") + F("fee_vat"))
                & Q(amount__gt=0, fee__gte=0, fee_vat__gte=0),
            ),
            check(
                "acquirertransfer_arrived_iff_paid",
                Q(state=AcquirerTransferState.PAID, arrived_at__isnull=False)
                | ~Q(state=AcquirerTransferState.PAID) & Q(arrived_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return str(self.transfer_id)

    @property
    def expected_at(self) -> datetime:
        """When it arrives at the latest."""
        return self.created_at + ARRIVES_WITHIN

    @staticmethod
    def new_id(at: datetime) -> str:
        return ids.new("atr_", at)


class SettlementStatus(models.TextChoices):
    EXPECTED = "expected"  # the acquirer has said that it transfers the money
    ARRIVED = "arrived"
    LATE = "late"  # it should have arrived
    DIFFERS = "differs"  # it arrived, and an amount is not the expected one


class Settlement(KeyedRow):
    """The part of a transfer that is for one merchant, or a later one of what had waited for its charge.

    Amounts are satang, of its payments alone.
    """

    id = PublicIdKey()
    transfer = models.ForeignKey(AcquirerTransfer, on_delete=models.PROTECT, related_name="settlements")
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    gross_amount = models.BigIntegerField()  # satang received by its payments
    fee = models.BigIntegerField()  # satang: the fees of its payments
    fee_vat = models.BigIntegerField()  # satang: the VAT of these fees
    payment_count = models.IntegerField()
    differs = models.BooleanField(default=False)  # an amount is not the expected one
    created_at = models.DateTimeField()
    expected_at = models.DateTimeField()
    arrived_at = models.DateTimeField(null=True)

    class Meta:
        triggers = [
            triggers.keep_rows("a settlement is never deleted"),
            triggers.ReadOnly("what a settlement pays stays", exclude=["differs", "arrived_at"]),
            triggers.set_once("arrived_at", "a settlement keeps when it arrived"),
        ]
        indexes = [models.Index(fields=["merchant", "created_at", "id"], name="settlement_newest_first")]
        constraints = [check("settlement_has_payments", Q(payment_count__gte=1))]

    @property
    def net_amount(self) -> int:
        """Satang that the balance of the merchant gets."""
        return self.gross_amount - self.fee - self.fee_vat

    def status_at(self, now: datetime) -> SettlementStatus:
        if self.arrived_at is None:
            return SettlementStatus.EXPECTED if now < self.expected_at else SettlementStatus.LATE
        return SettlementStatus.DIFFERS if self.differs else SettlementStatus.ARRIVED


class ItemKind(models.TextChoices):
    CHARGE = "charge"
    REFUND = "refund"
    ADJUSTMENT = "adjustment"  # anything else that changes what we receive, such as a dispute


# What can be without a result here when a transfer lists it.
WAITING_KINDS = (ItemKind.CHARGE, ItemKind.REFUND)


class SettledItem(models.Model):
    """An entry of the acquirer's ledger that a transfer pays out. What we receive is positive; satang."""

    transfer = models.ForeignKey(
        AcquirerTransfer, on_delete=models.PROTECT, related_name="items", db_index=False
    )
    kind = models.CharField(max_length=10, choices=ItemKind.choices)
    reference = models.CharField(max_length=64)  # the acquirer's own id
    # The payment of a charge; a refund has that of its charge. Null if we do not know it.
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, related_name="settled_items")
    refund_id = PublicId(null=True)
    settlement = models.ForeignKey(Settlement, on_delete=models.PROTECT, null=True, related_name="items")
    amount = models.BigIntegerField()  # satang
    fee = models.BigIntegerField(null=True)  # satang that the acquirer keeps
    fee_vat = models.BigIntegerField(null=True)  # satang
    net_amount = models.BigIntegerField()  # satang that it adds to the transfer
    description = models.CharField(max_length=64, blank=True, default="")
    # Its charge or refund has no result here, or its fee is not known.
    awaits_result = models.BooleanField(default=False)

    class Meta:
        default_permissions = ("view",)
        triggers = [
            triggers.keep_rows("what the acquirer reported is never deleted"),
            triggers.ReadOnly("what the acquirer reported stays", exclude=["settlement", "awaits_result"]),
            triggers.Refuse(
                "settled_once",
                triggers.UPDATE,
                "only an item that waits for its result gets a settlement",
                condition="NOT OLD.awaits_result "
                "AND (NEW.settlement_id, NEW.awaits_result) IS DISTINCT FROM (OLD.settlement_id, false)",
            ),
        ]
        indexes = [
            models.Index(fields=["reference"], name="settleditem_by_reference"),  # staff search by it
            models.Index(
                fields=["transfer"], condition=Q(awaits_result=True), name="settleditem_awaits_result"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["transfer", "kind", "reference"], name="settleditem_once"),
            known("kind", ItemKind, name="settleditem_kind_known"),
            check(
                "settleditem_awaits_its_result",
                Q(awaits_result=False)
                | Q(kind__in=WAITING_KINDS, payment__isnull=False, settlement__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.reference}"


class AcquirerReading(KeyedRow):
    """How far an acquirer was read."""

    acquirer = models.CharField(max_length=20, primary_key=True)
    read_at = models.DateTimeField(null=True)  # when its transfers were read
    ledger_until = models.DateTimeField(null=True)  # its ledger is copied until then


class UnpaidEntry(KeyedRow):
    """An entry of an acquirer's ledger, deleted once a transfer that pays it has arrived."""

    acquirer = models.CharField(max_length=20)
    entry_id = models.CharField(max_length=64)  # the acquirer's own id
    transferable_at = models.DateTimeField()  # transfers pay it from this time on
    item = models.JSONField()  # as the adapter read it (`banks.SettledItem`)

    class Meta:
        indexes = [models.Index(fields=["acquirer", "transferable_at"], name="unpaidentry_next")]
        constraints = [models.UniqueConstraint(fields=["acquirer", "entry_id"], name="unpaidentry_once")]


class QuestionKind(models.TextChoices):
    """What is not as expected. Each has its difference: satang that came more, or less if negative."""

    FEE_DIFFERS = "fee_differs", "The acquirer kept another fee than it had said"
    AMOUNT_DIFFERS = "amount_differs", "The transfer is not the sum of what it pays out"
    PAID_TWICE = "paid_twice", "The charge or refund was listed before"
    UNKNOWN_ITEM = "unknown_item", "No payment or refund of ours has this item"
    ADJUSTMENT = "adjustment", "The acquirer changed what we receive"
    MISSING = "missing", "The acquirer has not paid the charge, but later ones"
    FEE_UNKNOWN = "fee_unknown", "The acquirer has not said what it keeps"
    LATE = "late", "The transfer has not arrived in time"
    CHANGED = "changed", "The acquirer reports the transfer with another result or other amounts than before"


# Their difference may be the money of a transfer that failed.
OF_FAILED_TRANSFERS = (QuestionKind.AMOUNT_DIFFERS, QuestionKind.ADJUSTMENT)


class OpenQuestion(KeyedRow):
    """Something that a person must look at, asked once. While it is open, its month is not closed."""

    id = PublicIdKey()
    kind = models.CharField(max_length=14, choices=QuestionKind.choices)
    acquirer = models.CharField(max_length=20)
    subject = models.CharField(max_length=64)  # the acquirer's id of the item, transfer or charge
    transfer = models.ForeignKey(
        AcquirerTransfer, on_delete=models.PROTECT, null=True, related_name="questions"
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, related_name="+")
    difference = models.BigIntegerField()  # satang that came more, or less if negative
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    # The difference was booked as a loss of the operator, or a gain.
    is_booked = models.BooleanField(default=False)
    # The difference is the money of this transfer, which failed.
    failed_transfer = models.OneToOneField(
        AcquirerTransfer, on_delete=models.PROTECT, null=True, related_name="answered"
    )
    note = models.CharField(max_length=255, blank=True, default="")

    class Meta:
        permissions = [("close_question", "Can close questions about settlements")]
        triggers = [
            triggers.keep_rows("a question is closed, never deleted"),
            triggers.ReadOnly(
                "a question stays as it was asked",
                exclude=["closed_at", "is_booked", "failed_transfer", "note"],
            ),
            triggers.set_once("closed_at", "a closed question stays closed"),
            triggers.Refuse(
                "answer_final",
                triggers.UPDATE,
                "a closed question keeps its answer",
                condition="OLD.closed_at IS NOT NULL "
                "AND (NEW.note, NEW.is_booked, NEW.failed_transfer_id) "
                "IS DISTINCT FROM (OLD.note, OLD.is_booked, OLD.failed_transfer_id)",
            ),
        ]
        indexes = [
            models.Index(fields=["opened_at"], condition=Q(closed_at__isnull=True), name="openquestion_open")
        ]
        constraints = [
            known("kind", QuestionKind, name="openquestion_kind_known"),
            models.UniqueConstraint(
                fields=["kind", "acquirer", "subject", "transfer"],
                name="openquestion_once",
                nulls_distinct=False,
            ),
            check(
                "openquestion_closed_with_note",
                Q(closed_at__isnull=False) | Q(is_booked=False, failed_transfer=None, note=""),
            ),
            check(
                "openquestion_of_failed_transfer",
                Q(failed_transfer=None) | Q(is_booked=False, kind__in=OF_FAILED_TRANSFERS),
            ),
        ]
