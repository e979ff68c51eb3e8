from django.db import models


class JournalType(models.TextChoices):
    """What a journal records, and between which accounts the money moves. Each is posted once per subject."""

    PAYMENT = "payment"  # bank, acquirer or suspense -> available, unsettled or unconfirmed; fees -> fees
    FEE = "fee"  # available and debt, or unsettled -> fees: known after the payment
    FEE_RETURNED = "fee_returned"  # fees -> available: the statement names another one, or a charge is void
    FEE_ADDED = "fee_added"  # available and debt -> fees: that one
    SETTLED = "settled"  # unsettled -> available: the acquirer paid it, or a refund needs it
    TRANSFER_RECEIVED = "transfer_received"  # acquirer and fees -> bank and write-offs: it paid what it owed
    TRANSFER_SEEN = "transfer_seen"  # suspense -> bank of the acquirer: our bank reports its transfer
    DIFFERENCE_BOOKED = "difference_booked"  # acquirer -> write-offs, or back
    UNSETTLED = "unsettled"  # available -> unsettled: the refund that needed it did not happen
    REFUND_RESERVED = "refund_reserved"  # available -> reserved
    REFUND_PAID = "refund_paid"  # reserved -> bank or acquirer
    REFUND_RELEASED = "refund_released"  # reserved -> available: it failed or was canceled
    WITHDRAWAL_RESERVED = "withdrawal_reserved"  # available -> reserved
    WITHDRAWAL_PAID = "withdrawal_paid"  # reserved -> bank
    WITHDRAWAL_RELEASED = "withdrawal_released"  # reserved -> available: it failed or was canceled
    WITHDRAWAL_RETURNED = "withdrawal_returned"  # bank -> available: the bank sent it back after success
    REVERSAL = "reversal"  # available and debt, unconfirmed, or suspense -> bank: it took money back
    DEBT_REPAID = "debt_repaid"  # available -> debt
    HELD = "held"  # bank or acquirer -> suspense: it waits for staff
    ACCEPTED = "accepted"  # suspense -> available: the merchant keeps a refund that came back
    SENT_BACK = "sent_back"  # suspense -> bank: held money went back to its payer
    MERGED = "merged"  # suspense -> bank: it was a duplicate report of other money
    UNMERGED = "unmerged"  # bank -> suspense: the merge was undone
    UNDONE = "undone"  # suspense -> bank: the import of the only report of it was undone
    WRITTEN_OFF = "written_off"  # write-offs -> bank: it took back money that had already left
    RECOVERED = "recovered"  # bank -> write-offs: the write-off was undone
    CONFIRMED = "confirmed"  # unconfirmed -> available: a bank or a second person confirmed it


class BalanceTransactionType(models.TextChoices):
    """What changes a merchant's balance: the types of journals, with unconfirmed money apart."""

    PAYMENT = "payment"
    UNCONFIRMED_PAYMENT = "unconfirmed_payment"
    UNSETTLED_PAYMENT = "unsettled_payment"
    FEE = "fee"
    UNSETTLED_FEE = "unsettled_fee"
    FEE_ADDED = "fee_added"
    FEE_RETURNED = "fee_returned"
    SETTLED = "settled"
    UNSETTLED = "unsettled"
    CONFIRMED = "confirmed"
    REFUND_RESERVED = "refund_reserved"
    REFUND_PAID = "refund_paid"
    REFUND_RELEASED = "refund_released"
    REFUND_RETURNED = "refund_returned"
    WITHDRAWAL_RESERVED = "withdrawal_reserved"
    WITHDRAWAL_PAID = "withdrawal_paid"
    WITHDRAWAL_RELEASED = "withdrawal_released"
    WITHDRAWAL_RETURNED = "withdrawal_returned"
    REVERSAL = "reversal"
    UNCONFIRMED_REVERSAL = "unconfirmed_reversal"
