"""What staff read about a slip: what it paid, where it was shown, and what its bank answers."""

from collections.abc import Iterator
from typing import Literal

from django.utils.translation import gettext, gettext_lazy as _

from banks import SlipTransfer
from core import clock, money, request_context
from core.thai import thaibanks
from reconciliation.matching import deduplication
from reconciliation.models import BankTransaction, SlipCheck
from reconciliation.slips import checking
from reconciliation.slips.checking import BankCheckResult

Finding = tuple[Literal["success", "warning", "error"], str]


def of_slip(slip_check: SlipCheck) -> Iterator[Finding]:
    """Facts first, then warnings and errors."""
    bank_transaction, claimed = slip_check.bank_transaction, slip_check.claimed_payment_id
    if bank_transaction is None:
        is_wallet = slip_check.sending_bank == checking.TRUEMONEY
        sender = "TrueMoney" if is_wallet else thaibanks.label(slip_check.sending_bank)
        text = _(
            "No bank has reported this transfer: %(result)s, id %(transaction_id)s. The slip is no "
            "proof of payment. Do not deliver yet; check again in a moment."
        )
        yield "warning", text % {"result": sender, "transaction_id": slip_check.transaction_id}
    else:
        yield from _of_money_of_slip(bank_transaction, claimed)
    for shown in checking.earlier_checks(slip_check):
        other = {"claimed_payment_id": shown.claimed_payment_id}
        what = _(" for payment %(claimed_payment_id)s") % other if shown.claimed_payment_id else ""
        name, at = request_context.display_name(shown.actor), clock.display(shown.checked_at)
        text = _("This slip was shown before: on %(at)s to %(name)s%(what)s.")
        is_other = shown.claimed_payment_id not in (None, claimed)
        yield "error" if is_other else "warning", text % {"at": at, "name": name, "what": what}


def _of_money_of_slip(bank_transaction: BankTransaction, claimed_payment_id: str | None) -> Iterator[Finding]:
    """What the transfer paid."""
    arrived = {
        "amount": money.display(bank_transaction.amount),
        "at": clock.display(bank_transaction.paid_at),
    }
    yield "success", _("%(amount)s arrived, paid on %(at)s.") % arrived
    if bank_transaction.is_credited and bank_transaction.merchant is not None:
        paid = {"payment_id": bank_transaction.payment_id, "merchant": bank_transaction.merchant.name}
        yield "success", _("It paid payment %(payment_id)s of %(merchant)s.") % paid
    elif bank_transaction.resolution_state:
        yield "error", f"{bank_transaction.get_resolution_state_display()}."
    else:
        yield "warning", gettext("It has paid nothing yet: it is an open exception.")
    if (
        claimed_payment_id
        and bank_transaction.is_credited
        and claimed_payment_id != bank_transaction.payment_id
    ):
        text = _("It was used already for payment %(payment_id)s, not for %(claimed_payment_id)s.")
        yield (
            "error",
            text % {"payment_id": bank_transaction.payment_id, "claimed_payment_id": claimed_payment_id},
        )
    if (reversal := deduplication.counterpart(bank_transaction)) is not None:
        yield "error", _("The bank reversed this money: %(reversal)s.") % {"reversal": reversal.id}


def of_bank_answer(answer: BankCheckResult) -> list[Finding]:
    """The answer of a merchant's bank about a transfer that no bank reported."""
    prefix = _("The bank of %(merchant)s") % {"merchant": answer.merchant.name}
    if answer.transfer is None:
        text = _("%(prefix)s has no such transfer. The slip is no proof of payment.")
        return [("error", text % {"prefix": prefix})]
    text, transfer = _("%(prefix)s knows it: %(transfer)s."), _of_transfer(answer.transfer)
    return [("warning", text % {"prefix": prefix, "transfer": transfer}), _of_payment(answer)]


def _of_transfer(transfer: SlipTransfer) -> str:
    given = filter(None, (transfer.reference1, transfer.reference2, transfer.reference3))
    payee, references = transfer.payee or _("an unnamed payee"), ", ".join(given) or _("none")
    return _("%(amount)s on %(at)s to %(payee)s, references %(references)s") % {
        "amount": money.display(transfer.amount),
        "at": clock.display(transfer.transferred_at),
        "payee": payee,
        "references": references,
    }


def _of_payment(answer: BankCheckResult) -> Finding:
    payment = answer.payment
    if payment is None:
        return "error", gettext("It is for no QR code of this service at that bank, so it pays nothing here.")
    words = {"payment": payment.id, "merchant": payment.merchant.name}
    prefix = _("It is for payment %(payment)s of %(merchant)s") % words
    if answer.is_inquiry_scheduled:
        text = _(
            "%(prefix)s, and the bank is being asked about it now. Check the slip again in a few "
            "seconds: only received money completes a payment."
        )
        return "warning", text % {"prefix": prefix}
    text = _("%(prefix)s, which is %(status)s. Perhaps this transfer paid it: compare amount and time.")
    return "error", text % {"prefix": prefix, "status": payment.get_status_display().lower()}
