"""What staff read about a slip: one sentence for each finding."""

from collections.abc import Iterator
from typing import Literal

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from banks import SlipTransfer
from core import money, request_context
from reconciliation.exceptions.detail_page import bank_label
from reconciliation.models import BankTransaction, ResolutionState, SlipCheck
from reconciliation.slips import checking
from reconciliation.slips.bank_check import BankCheckResult

Level = Literal["success", "warning", "error"]
Finding = tuple[Level, str]
_MONEY_LEFT = {
    ResolutionState.SENDING_BACK: gettext_noop("Its money is on its way back to the payer."),
    ResolutionState.SENT_BACK: gettext_noop("Its money was sent back to the payer."),
    ResolutionState.TAKEN_BACK: gettext_noop("The bank reversed it."),
    ResolutionState.MERGED: gettext_noop("It was merged into another transaction."),
}


def of_check(slip_check: SlipCheck) -> list[Finding]:
    """Facts first, then warnings and errors."""
    movement = slip_check.movement
    if movement is None:
        return [_not_reported(slip_check), *_earlier_checks(slip_check)]
    findings = [_arrived(movement), *_usage(movement, slip_check)]
    if (reversal := checking.find_reversal(movement)) is not None:
        text = _("The bank reversed this money: %(reversal)s.")
        findings.append(("error", text % {"reversal": reversal.id}))
    return [*findings, *_earlier_checks(slip_check)]


def of_bank_answer(answer: BankCheckResult) -> list[Finding]:
    """The answer of a merchant's bank about a transfer that no bank reported."""
    prefix = _("The bank of %(merchant)s") % {"merchant": answer.merchant.name}
    if answer.transfer is None:
        return [
            (
                "error",
                _("%(prefix)s has no such transfer. The slip is no proof of payment.") % {"prefix": prefix},
            )
        ]
    return [
        (
            "warning",
            _("%(prefix)s knows it: %(transfer)s.")
            % {"prefix": prefix, "transfer": _describe_transfer(answer.transfer)},
        ),
        _of_payment(answer),
    ]


def _describe_transfer(transfer: SlipTransfer) -> str:
    at = localtime(transfer.transferred_at)
    given = filter(None, (transfer.reference1, transfer.reference2, transfer.reference3))
    payee, references = transfer.payee or _("an unnamed payee"), ", ".join(given) or _("none")
    return _("%(amount)s on %(at)s to %(payee)s, references %(references)s") % {
        "amount": money.display(transfer.amount),
        "at": f"{at:%Y-%m-%d %H:%M:%S}",
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
    if not answer.is_inquiry_scheduled:
        status = payment.get_status_display().lower()
        return "error", (
            _(
                "%(prefix)s, whose status is %(status)s. Perhaps this transfer paid it: compare amount and "
                "time."
            )
            % {"prefix": prefix, "status": status}
        )
    return "warning", (
        _(
            "%(prefix)s, and the bank is being asked about it now. Check the slip again in a few "
            "seconds: only received money completes a payment."
        )
        % {"prefix": prefix}
    )


def _not_reported(slip_check: SlipCheck) -> Finding:
    bank = slip_check.sending_bank
    sender = "TrueMoney" if bank == checking.TRUEMONEY else bank_label(bank)
    sentence = _(
        "No bank has reported this transfer: %(result)s, id %(transaction_id)s. The slip is no "
        "proof of payment. Do not deliver yet; check again in a moment."
    ) % {"result": sender, "transaction_id": slip_check.transaction_id}
    return "warning", sentence


def _arrived(movement: BankTransaction) -> Finding:
    at = localtime(movement.paid_at)
    return "success", _("%(amount)s arrived, paid on %(at)s.") % {
        "amount": money.display(movement.amount),
        "at": f"{at:%Y-%m-%d %H:%M:%S}",
    }


def _usage(movement: BankTransaction, slip_check: SlipCheck) -> Iterator[Finding]:
    claimed = slip_check.claimed_payment_id
    if movement.is_credited and movement.merchant is not None:
        yield (
            "success",
            _("It paid payment %(payment_id)s of %(merchant)s.")
            % {"payment_id": movement.payment_id, "merchant": movement.merchant.name},
        )
    elif movement.resolution_state in _MONEY_LEFT:
        yield "error", _(_MONEY_LEFT[ResolutionState(movement.resolution_state)])
    else:
        yield "warning", _("It has paid nothing yet: it is an open exception.")
    if claimed and movement.is_credited and claimed != movement.payment_id:
        yield (
            "error",
            _("It was used already for payment %(payment_id)s, not for %(claimed_payment_id)s.")
            % {"payment_id": movement.payment_id, "claimed_payment_id": claimed},
        )


def _earlier_checks(slip_check: SlipCheck) -> Iterator[Finding]:
    for shown in checking.earlier_checks(slip_check):
        what = (
            _(" for payment %(claimed_payment_id)s") % {"claimed_payment_id": shown.claimed_payment_id}
            if shown.claimed_payment_id
            else ""
        )
        other = (
            shown.claimed_payment_id is not None and shown.claimed_payment_id != slip_check.claimed_payment_id
        )
        at, name = localtime(shown.checked_at), request_context.display_name(shown.actor)
        yield (
            "error" if other else "warning",
            _("This slip was shown before: on %(at)s to %(name)s%(what)s.")
            % {"at": f"{at:%Y-%m-%d %H:%M:%S}", "name": name, "what": what},
        )
