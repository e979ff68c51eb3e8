"""What staff and merchants read about refunds alone. The others are in `transfers.explanations`."""

from django.utils.translation import gettext_lazy as _

CREATED = _("Refund of {amount} created.")
WAITS_FOR_ACCOUNT = _(
    "It waits for the customer's account: from the merchant's system, or from the customer on the claim page."
)
DESTINATION_SET = _("The destination of the refund of {amount} is set.")
COMPLETED = _("{amount} went back to the payer.")
COMPLETED_AT = _("{amount} went back to the payer on {at}. Nothing is left to do.")
RETURNED = _("A refund of {amount} came back from the bank.")
OF_REVERSAL = _("The bank itself took back {amount}. This refund only shows it.")
ALL_REFUNDED = _("Refunded: all of {amount} went back to the payer.")
ALL_REVERSED = _("Reversed by the bank: it took back {amount}.")
LINK_REVOKED = _("The payer cannot name an account by the link any more. The merchant can make a new one.")
