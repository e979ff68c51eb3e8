"""Bank transactions: what banks report, the match result, and the decision of staff."""

import logging
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Case, F, Func, Q, TextField, Value, When
from django.db.models.functions import Collate, Lower

from core import digests, vault
from core.database import triggers
from core.database.columns import PublicIdKey, SealedText, check, known
from core.database.state_machines import LockableRows, StateMachine
from core.digests import DigestedColumn, DigestedRow
from merchants.models import Merchant
from payments import exceptions
from payments.match_results import HELD_RESULTS, PAYMENT_RESULTS, MatchResult
from payments.models import Payment
from payments.payers import Payer
from reconciliation.models import listing
from reconciliation.models.listing import ExceptionReason, ReconciliationException

log = logging.getLogger("reconciliation")


class ReportSource(models.TextChoices):
    """How the bank reported it."""

    CALLBACK = "callback"
    INQUIRY = "inquiry"
    STATEMENT = "statement"


class BankTransactionKind(models.TextChoices):
    CREDIT = "credit"
    DECLINE = "decline"
    REVERSAL = "reversal"


class ResolutionState(models.TextChoices):
    """What staff decided about a bank transaction that is an exception."""

    OPEN = "", "None yet"
    ACCEPTED = "accepted"  # its own payment succeeded by it
    ATTACHED = "attached"  # another payment succeeded by it
    SENDING_BACK = "sending_back", "On its way back to the payer"
    SENT_BACK = "sent_back", "Sent back to the payer"
    TAKEN_BACK = "taken_back", "Reversed by the bank"  # before staff decided
    MERGED = "merged", "Merged into another bank transaction"  # they were two reports of one
    ACQUIRER = "acquirer", "A transfer of the acquirer"
    UNDONE = "undone", "Gone with its import"  # the import of its only report was undone
    DISMISSED = "dismissed"  # a reversal of money that never came in
    WRITTEN_OFF = "written_off"  # a reversal of money that has left already: the operator's loss


KEPT_AS_REPORTED = "a bank transaction is kept as its bank reported it"
# Personal data is erased from here on: it is matched, and nothing waits for staff or goes back to the payer.
IS_FINISHED = f"""OLD.match_result <> '' AND NOT (OLD.resolution_state IN ('', 'sending_back')
    AND OLD.match_result IN {triggers.sql_list(HELD_RESULTS)})"""
IS_MATCHED = Q(matched_at__isnull=False)
CREDITED = Q(match_result="applied") | Q(resolution_state__in=["accepted", "attached"])


class BankTransactionQuerySet(LockableRows["BankTransaction"]):
    def not_matched(self) -> "BankTransactionQuerySet":
        return self.filter(match_result=MatchResult.PENDING)

    def unconfirmed(self) -> "BankTransactionQuerySet":
        """Money that only an uploaded statement reports, and that counts here."""
        elsewhere = [ResolutionState.MERGED, ResolutionState.ACQUIRER, ResolutionState.UNDONE]
        return self.filter(is_confirmed=False).exclude(resolution_state__in=elsewhere)

    def credited(self) -> "BankTransactionQuerySet":
        """Return bank transactions that made a payment succeed."""
        return self.filter(CREDITED)

    def locked_with_payment(self, bank_transaction_id: str) -> "BankTransaction":
        """Lock its payment, then the row. Another report of the same money cannot pay it meanwhile."""
        payment_id = self.values_list("payment_id", flat=True).get(pk=bank_transaction_id)
        if payment_id is not None:
            Payment.objects.locked(payment_id)
        return self.locked(bank_transaction_id)


class BankTransaction(DigestedRow, StateMachine):
    """A credit, decline or reversal as a bank reports it. Unique by bank, reference of the bank and kind."""

    TRANSITIONS = {
        ResolutionState.OPEN: set(ResolutionState) - {ResolutionState.OPEN},
        ResolutionState.SENDING_BACK: {
            ResolutionState.OPEN,
            ResolutionState.SENT_BACK,
            ResolutionState.TAKEN_BACK,
        },
        ResolutionState.SENT_BACK: {ResolutionState.OPEN},  # the return bounced
        ResolutionState.MERGED: {ResolutionState.OPEN},  # there are two transactions after all
        ResolutionState.DISMISSED: {ResolutionState.OPEN},  # the reversed credit was reported later
        ResolutionState.WRITTEN_OFF: {ResolutionState.OPEN},  # it can be applied after all
    }
    STATE_FIELD = "resolution_state"
    DIGESTED = DigestedColumn("payer_account_sealed", "payer_account_digest")

    id = PublicIdKey()
    bank = models.CharField(max_length=20)
    # Given by the bank. Statement lines have none, so we generate one.
    bank_reference = models.CharField(max_length=64)
    # The bank's id, if it came after the statement line.
    later_bank_reference = models.CharField(max_length=64, blank=True, default="")
    source = models.CharField(max_length=9, choices=ReportSource.choices, default=ReportSource.CALLBACK)
    kind = models.CharField(max_length=8, choices=BankTransactionKind.choices)
    biller_id = models.CharField(max_length=15)
    reference1 = models.CharField(max_length=35)
    reference2 = models.CharField(max_length=35, blank=True, default="")
    reference3 = models.CharField(max_length=35, blank=True, default="")
    amount = models.BigIntegerField()  # satang
    paid_at = models.DateTimeField()  # the bank's time of payment
    payer_name = models.CharField(max_length=140, blank=True, default="")
    payer_bank_code = models.CharField(max_length=3, blank=True, default="")
    payer_account_sealed = SealedText(blank=True, default="", editable=False)
    payer_account_digest = digests.digest_column()
    slip_reference = models.CharField(max_length=64, blank=True, default="")
    # No: only an uploaded statement reports this money, so it cannot be paid out.
    is_confirmed = models.BooleanField(default=True, db_default=True)
    match_result = models.CharField(
        max_length=16, choices=MatchResult.choices, default=MatchResult.PENDING, blank=True
    )
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, null=True, related_name="bank_transactions", db_index=False
    )
    received_at = models.DateTimeField()
    matched_at = models.DateTimeField(null=True)
    resolution_state = models.CharField(
        max_length=12, choices=ResolutionState.choices, default=ResolutionState.OPEN, blank=True
    )
    resolved_at = models.DateTimeField(null=True)

    objects = BankTransactionQuerySet.as_manager()

    class Meta:
        triggers = [
            triggers.keep_rows("a bank transaction is never deleted"),
            triggers.ReadOnly(
                KEPT_AS_REPORTED,
                exclude=[
                    *("match_result", "matched_at", "payment", "merchant", "resolution_state", "resolved_at"),
                    *("later_bank_reference", "is_confirmed", "payer_name", "payer_bank_code"),
                    *("payer_account_sealed", "payer_account_digest", "slip_reference"),
                ],
                is_forbidden=True,
            ),
            triggers.final(
                "resolution_state",
                [ResolutionState.OPEN],
                ["resolved_at"],
                "a bank transaction keeps when it was resolved",
                is_forbidden=True,
            ),
            triggers.final(
                "match_result", [MatchResult.PENDING], ["matched_at"], KEPT_AS_REPORTED, is_forbidden=True
            ),
            *(
                triggers.set_once(
                    field, KEPT_AS_REPORTED, is_text=True, erasable_if=erasable_if, is_forbidden=True
                )
                for field, erasable_if in (
                    ("payer_name", IS_FINISHED),
                    ("payer_bank_code", ""),
                    ("payer_account_sealed", IS_FINISHED),
                    ("payer_account_digest", ""),
                    ("slip_reference", ""),
                )
            ),
            triggers.Refuse(
                "account_with_digest",
                triggers.UPDATE,
                KEPT_AS_REPORTED,
                # An account that was erased does not come back.
                condition="OLD.payer_account_sealed = '' AND NEW.payer_account_sealed <> '' "
                "AND (OLD.payer_account_digest <> '' OR NEW.payer_account_digest = '')",
                is_forbidden=True,
            ),
            triggers.Refuse(
                "bank_id_set_once",
                triggers.UPDATE,
                "a bank transaction keeps its ids",
                condition="NEW.later_bank_reference <> OLD.later_bank_reference "
                "AND (OLD.later_bank_reference <> '' OR OLD.source <> 'statement')",
            ),
            triggers.Refuse(
                "matched_once",
                triggers.UPDATE,
                "a bank transaction is matched once",
                # A reversal that came before its credit is matched again.
                condition="NEW.match_result <> OLD.match_result AND OLD.match_result <> '' AND NOT "
                "(OLD.kind = 'reversal' "
                "AND OLD.resolution_state = '' AND OLD.match_result = 'unmatched' AND NEW.match_result IN "
                "('reversed', 'ordered'))",
            ),
            triggers.Refuse(
                "match_result_fits_kind",
                triggers.UPDATE,
                "this kind of bank transaction cannot have this result",
                condition=f"""NEW.match_result <> OLD.match_result AND (CASE NEW.kind
                    WHEN 'credit' THEN NEW.match_result IN {triggers.sql_list(HELD_RESULTS)}
                        OR NEW.match_result = 'applied' AND NEW.payment_id IS NOT NULL
                    WHEN 'decline' THEN NEW.match_result = 'declined'
                    ELSE NEW.match_result IN ('unmatched', 'reversed', 'ordered')
                END) IS NOT TRUE""",
            ),
            triggers.Transitions(),
            triggers.Refuse(
                "keeps_its_payment",
                triggers.UPDATE,
                "a bank transaction keeps its payment",
                condition="NEW.match_result = OLD.match_result "
                "AND (NEW.payment_id, NEW.merchant_id) IS DISTINCT FROM (OLD.payment_id, OLD.merchant_id) "
                "AND NOT (OLD.resolution_state = '' AND NEW.resolution_state = 'attached')",
            ),
            triggers.Refuse(
                "stays_confirmed",
                triggers.UPDATE,
                "confirmed money stays confirmed",
                condition="OLD.is_confirmed AND NOT NEW.is_confirmed",
            ),
            triggers.Refuse(
                "statement_is_unconfirmed",
                triggers.INSERT,
                "only the bank or a second person confirms money",
                condition="NEW.source = 'statement' AND NEW.kind = 'credit' AND NEW.is_confirmed",
            ),
        ]
        permissions = [
            ("accept_exception", "Can accept money for its payment"),
            ("attach_exception", "Can attach money to another payment"),
            ("send_back_exception", "Can send money back to the payer"),
            ("return_excess_exception", "Can send the excess of an over-payment back to the payer"),
            ("send_to_exception", "Can send money back to another account"),
            ("manual_return_exception", "Can record money that was sent back at the bank"),
            ("merge_exception", "Can merge bank transactions that are one"),
            ("acquirer_exception", "Can identify money as a transfer of an acquirer"),
            ("dismiss_exception", "Can dismiss exceptions about no money of ours"),
            ("write_off_exception", "Can write off money that a bank took back"),
            ("credit_exception", "Can credit merchants with refunds that came back"),
            ("returned_exception", "Can book transfers as returned"),
            ("failed_exception", "Can book transfers and card payments as failed"),
            ("reopen_exception", "Can reopen resolved exceptions"),
            ("confirm_banktransaction", "Can confirm money that only a statement reports"),
        ]
        indexes = [
            models.Index(fields=["received_at"], condition=Q(match_result=""), name="banktxn_not_matched"),
            # Reports of the same money, and the search of staff. Probable duplicates of lines of statements:
            # by their source those that the bank reported, by the next index lines that got its id later.
            models.Index(
                fields=["reference1", "biller_id", "bank", "source", "amount"], name="banktxn_by_reference"
            ),
            models.Index(
                fields=["reference1", "biller_id", "amount", "bank"],
                condition=~Q(later_bank_reference=""),
                name="banktxn_with_later_bank_id",
            ),
            models.Index(
                fields=["received_at"], condition=Q(is_confirmed=False), name="banktxn_not_confirmed"
            ),
            # Of matched rows. They are matched milliseconds after they are stored, and then PostgreSQL writes
            # them anew into all indexes, so they have one entry here. Queries add those that are not matched.
            # A day of a bank beside its statement.
            models.Index(fields=["bank", "paid_at"], condition=IS_MATCHED, name="banktxn_by_bank_day"),
            models.Index(
                Collate(Lower("payer_name"), "C"),
                condition=~Q(payer_name="") & IS_MATCHED,
                name="banktxn_by_payer_name",
            ),
            models.Index(
                Collate(Func(Lower("payer_name"), Value(" "), Value(-1), function="split_part"), "C"),
                condition=Q(payer_name__contains=" ") & IS_MATCHED,
                name="banktxn_by_payer_last_word",
            ),
            models.Index(
                fields=["slip_reference"], condition=~Q(slip_reference=""), name="banktxn_by_slip_reference"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["bank_reference", "bank", "kind"], name="banktxn_unique"),
            models.UniqueConstraint(
                fields=["later_bank_reference", "bank", "kind"],
                condition=~Q(later_bank_reference=""),
                name="banktxn_unique_by_later_id",
            ),
            # Also finds the bank transactions of a payment.
            models.UniqueConstraint(
                F("payment"),
                Case(When(CREDITED, Value("")), default=F("id"), output_field=TextField()),
                condition=Q(payment__isnull=False),
                name="banktxn_credits_payment_once",
            ),
            known("kind", BankTransactionKind, name="banktxn_kind_known"),
            known("source", ReportSource, name="banktxn_source_known"),
            known("match_result", MatchResult, name="banktxn_match_result_known"),
            known("resolution_state", ResolutionState, name="banktxn_resolution_state_known"),
            check(
                "banktxn_only_held_are_resolved",
                Q(resolution_state="", resolved_at__isnull=True)
                | Q(match_result__in=HELD_RESULTS, resolved_at__isnull=False) & ~Q(resolution_state=""),
            ),
            check(
                "banktxn_accepted_has_payment",
                ~Q(resolution_state__in=["accepted", "attached"]) | Q(payment__isnull=False),
            ),
            check(
                "banktxn_resolution_state_fits_kind",
                Q(resolution_state="")
                | Q(kind="credit") & ~Q(resolution_state__in=["dismissed", "written_off"])
                | Q(kind="reversal", resolution_state__in=["dismissed", "written_off"]),
            ),
            check(
                "banktxn_undone_was_alone",
                ~Q(resolution_state="undone")
                | Q(
                    source="statement", match_result="unmatched", is_confirmed=False, later_bank_reference=""
                ),
            ),
            check("banktxn_amount_not_negative", Q(amount__gte=0)),
            check(
                "banktxn_unconfirmed_from_statement",
                Q(is_confirmed=True) | Q(source="statement", kind="credit"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bank} {self.bank_reference}"

    @property
    def payer_account(self) -> str:
        sealed = self.payer_account_sealed
        return vault.open_sealed(sealed, context=self.id) if sealed else ""

    @property
    def payer(self) -> Payer:
        """Who paid, as the bank reported it. An account that the bank did not report is left out."""
        account = self.payer_account
        if account and not self.has_its_content():
            log.error("%s does not have the account that its bank reported", self.id)
            account = ""
        return Payer(self.payer_name, self.payer_bank_code, account, self.id_at_bank)

    @property
    def is_credited(self) -> bool:
        """Whether it made a payment succeed."""
        credited = (ResolutionState.ACCEPTED, ResolutionState.ATTACHED)
        return self.match_result == MatchResult.APPLIED or self.resolution_state in credited

    @property
    def current_bank_reference(self) -> str:
        """The bank's id if it is known, else the generated one."""
        return self.later_bank_reference or self.bank_reference

    @property
    def id_at_bank(self) -> str:
        """The id that the bank knows; empty if only a statement line reported it."""
        return self.later_bank_reference or (
            "" if self.source == ReportSource.STATEMENT else self.bank_reference
        )

    @property
    def bank_references(self) -> list[str]:
        """All its ids. The first never changes."""
        return [name for name in (self.bank_reference, self.later_bank_reference) if name]

    def resolve(self, target: ResolutionState, *, now: datetime, **fields: Any) -> None:
        """Change the resolution state, or raise IllegalTransition. The caller holds the row lock.

        The list of exceptions shows it, and the merchant of the payment is told, see `payments.exceptions`.
        """
        self.transition(target, resolved_at=now if target else None, **fields)
        if target:
            listing.close(self.id)
        else:
            listing.show([self.listed()])
        if self.match_result in PAYMENT_RESULTS:
            exceptions.set_status(self.id, target or "open")
            exceptions.publish([self.id], now=now)

    def listed(
        self, reason: ExceptionReason | None = None, amount: int | None = None
    ) -> ReconciliationException:
        """Its row in the list of exceptions. reason, amount: of an excess."""
        is_reversal = self.kind == BankTransactionKind.REVERSAL
        return ReconciliationException(
            id=self.id,
            reason=reason or (ExceptionReason.REVERSAL if is_reversal else self.match_result),
            bank=self.bank,
            merchant_id=self.merchant_id,
            biller_id=self.biller_id,
            payment_id=self.payment_id,
            amount=amount or self.amount,
            reference1=self.reference1,
            bank_reference=self.current_bank_reference,
            opened_at=self.received_at,
        )
