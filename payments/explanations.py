"""What staff and merchants read about payments: each fact once. Why one failed is in `core.failures`."""

from django.utils.translation import gettext_lazy as _, gettext_noop

REQUESTED = _("{amount} requested.")
PAID = _("Paid: {amount}.")
PAID_AT = _("Paid: {amount} on {at}.")
FEE_TAKEN = _("The fee is known: {amount} with VAT.")
NOT_PAID = _("Not paid: {reason}.")
EXPIRED = _("The code can no longer be paid.")
EXPIRED_AT = _("Not paid: it expired on {at}. The customer needs a new code to pay.")
HOLD_ADVICE = _("Do not ship yet: {why}. Ask the customer. Then lift the hold, or refund the payment.")
HOLD_LIFTED = _("The hold ended: it can be shipped.")
UNMATCHED_MONEY = gettext_noop("A payment of the same amount arrived with an unknown reference.")
