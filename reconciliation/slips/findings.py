"""What staff read about a slip: one sentence for each finding."""

from collections.abc import Iterator
from typing import Literal

from django.utils.translation import gettext as _

from banks import SlipTransfer
from core import clock, money, request_context
from reconciliation.exceptions.detail_page import bank_label
from reconciliation.models import SlipCheck
from reconciliation.slips import checking
from reconciliation.slips.bank_check import BankCheckResult

Level = Literal["success", "warning", "error"]
Finding = tuple[Level, str]


def of_check(slip_check: SlipCheck) -> list[Finding]:
    """Facts first, then warnings and errors."""
    findings, movement = list(_of_money(slip_check)), slip_check.movement
    if movement is not None and (reversal := checking.find_reversal(movement)) is not None:
        text = _("The bank reversed this money: %(reversal)s.") % {"reversal": reversal.id}
        findings.append(("error", text))
    return [*findings, *_earlier_checks(slip_check)]


def of_bank_answer(answer: BankCheckResult) -> list[Finding]:
    """The answer of a merchant's bank about a transfer that no bank reported."""
    prefix = _("The bank of %(merchant)s") % {"merchant": answer.merchant.name}
    if answer.transfer is None:
        text = _("%(prefix)s has no such transfer. The slip is no proof of payment.")
        return [("error", text % {"prefix": prefix})]
    text, transfer = _("%(prefix)s knows it: %(transfer)s."), _describe_transfer(answer.transfer)
    return [("warning", text % {"prefix": prefix, "transfer": transfer}), _of_payment(answer)]


def _describe_transfer(transfer: SlipTransfer) -> str:
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
        return "error", _("It is for no QR code of this service at that bank, so it pays nothing here.")
    prefix = _("It is for payment %(payment)s of %(merchant)s") % {
        "payment": payment.id,
        "merchant": payment.merchant.name,
    }
    if answer.is_inquiry_scheduled:
        text = _(
            "%(prefix)s, and the bank is being asked about it now. Check the slip again in a few "
            "seconds: only received money completes a payment."
        )
        return "warning", text % {"prefix": prefix}
    text = _("%(prefix)s, which is %(status)s. Perhaps this transfer paid it: compare amount and time.")
    return "error", text % {"prefix": prefix, "status": payment.get_status_display().lower()}


def _of_money(slip_check: SlipCheck) -> Iterator[Finding]:
    """Whether the transfer has arrived, and what it paid."""
    movement, bank = slip_check.movement, slip_check.sending_bank
    if movement is None:
        sender = "TrueMoney" if bank == checking.TRUEMONEY else bank_label(bank)
        text = _(
            "No bank has reported this transfer: %(result)s, id %(transaction_id)s. The slip is no "
            "proof of payment. Do not deliver yet; check again in a moment."
        )
        yield "warning", text % {"result": sender, "transaction_id": slip_check.transaction_id}
        return
    arrived = {"amount": money.display(movement.amount), "at": clock.display(movement.paid_at)}
    yield "success", _("%(amount)s arrived, paid on %(at)s.") % arrived
    if movement.is_credited and movement.merchant is not None:
        paid = {"payment_id": movement.payment_id, "merchant": movement.merchant.name}
        yield "success", _("It paid payment %(payment_id)s of %(merchant)s.") % paid
    elif movement.resolution_state:
        yield "error", f"{movement.get_resolution_state_display()}."
    else:
        yield "warning", _("It has paid nothing yet: it is an open exception.")
    claimed = slip_check.claimed_payment_id
    if claimed and movement.is_credited and claimed != movement.payment_id:
        text = _("It was used already for payment %(payment_id)s, not for %(claimed_payment_id)s.")
        yield "error", text % {"payment_id": movement.payment_id, "claimed_payment_id": claimed}


def _earlier_checks(slip_check: SlipCheck) -> Iterator[Finding]:
    for shown in checking.earlier_checks(slip_check):
        claimed = {"claimed_payment_id": shown.claimed_payment_id}
        what = _(" for payment %(claimed_payment_id)s") % claimed if shown.claimed_payment_id else ""
        is_other = shown.claimed_payment_id not in (None, slip_check.claimed_payment_id)
        name = request_context.display_name(shown.actor)
        text = _("This slip was shown before: on %(at)s to %(name)s%(what)s.")
        values = {"at": clock.display(shown.checked_at), "name": name, "what": what}
        yield "error" if is_other else "warning", text % values
