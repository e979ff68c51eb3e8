"""What staff and merchants read about orders to banks, and about refunds and withdrawals: each fact once."""

from collections.abc import Callable
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core import money
from transfers.models import TransferEventType

EVENTS = {
    TransferEventType.SUBMITTED: _("Sent the order for {amount} to the bank."),
    TransferEventType.NOT_SENT: _("The bank could not be reached; the order will be sent again."),
    TransferEventType.INQUIRY: _("Inquiry about {amount}: {answer}."),
}
ANSWERS = {
    "succeeded": _("the bank reports success"),
    "failed": _("the bank reports failure"),
    "returned": _("the bank reports a return"),
    "processing": _("the bank is processing it"),
    "unknown": _("no usable answer"),
    "not_sent": _("the bank could not be reached"),
}
# An order that is not sent yet.
SENT_SOON = _("It is sent to the bank in a moment.")
PAUSED = _("It waits because no money is sent now: {cause}.")
ACCOUNT_NOT_LISTED = _("It waits because its account is not on the merchant's list of payout accounts.")
WAITS_FOR_DEBT = _("It waits because the merchant owes {debt}. It is sent when this is paid.")
SILENT = _("The bank does not answer. The order is sent at {at}.")
SENT_AGAIN_AT = _("The bank cannot be reached. The order is sent again at {at}.")
SENT_AGAIN_SOON = _("The bank cannot be reached. The order is sent again in a moment.")
NEEDS_APPROVAL = _("{amount} waits for approval by a second person.")
NEVER_ARRIVED = _("A colleague says that {amount} never arrived. A second person must approve it.")
# One that the bank has.
ASKED_AT = _("The bank has the order. It is asked at {at} whether the money arrived.")
ASKED_SOON = _("The bank has the order. It is asked in a moment whether the money arrived.")
OVERDUE = _("For {duration} the bank has not said whether it arrived. Ask the bank, then mark the order.")
# What became of a refund or a withdrawal.
ARRIVED = _("{amount} arrived on {at}. Nothing is left to do.")
FAILED = _("{amount} did not arrive: {reason}. It is in the merchant's balance again.")
CANCELED = _("{amount} was not sent: canceled before the bank had it. It is in the merchant's balance again.")
# What became of an order.
NOT_ARRIVED = _("{amount} did not arrive: {reason}.")
NOT_SENT = _("{amount} was not sent: canceled before the bank had it.")
CAME_BACK = _("{amount} arrived, and the bank returned it.")
# What staff do to one.
CANCEL = _("{amount} is in the merchant's balance again. This is possible until the bank has the order.")
MARK_ARRIVED = _("The bank told you that {amount} arrived. The order is completed.")
MARK_NEVER_ARRIVED = _(
    "The bank told you that it never sent {amount}, so the money is available again. Above the limit a "
    "second person must approve it, because the bank may still send it."
)
CANCEL_UNSENT = _("The bank never got this order over {amount}. It is canceled and never sent.")
# Safe mode.
PAUSE = _(
    "From now on the service sends no money: no refund, withdrawal or return, and no card is charged. "
    "What merchants ask for waits, and banks are still asked about what is under way."
)
RESUME = _(
    "The service sends money again. {count} orders wait, and their banks did not say that they have them: "
    "these are sent now. Before you resume, compare the orders since the backup with the statement of each "
    "bank. An order that a bank carried out and that is missing here would be paid twice if the merchant "
    "asks for it again."
)


def with_amount(text: Promise) -> Callable[[Any], str]:
    """The sentence with the amount of the row that an act is about."""
    return lambda row: str(text).format(amount=money.display(row.amount))
