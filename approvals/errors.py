from core.errors import Invalid


class PayoutAccountNotAllowed(Invalid):
    """The operator lists the accounts of this merchant, and it is none of them."""

    code = "payout_account_not_allowed"
    message = "bank_account is not on the list of accounts that money may be sent to."


class PayoutAccountTooNew(Invalid):
    code = "payout_account_too_new"
    message = "bank_account is on the list, and money may be sent to it from {usable_at} on."


class PayoutAccountListed(Exception):
    """The account is on the merchant's list already."""


class PayoutAccountNotFound(Exception):
    """No such account is on a list, or it was removed."""
