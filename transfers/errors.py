from core.errors import invalid_field

InvalidBankCode = invalid_field("bank_code", "bank_code is a bank's 3-digit code or short name.")
InvalidBankAccount = invalid_field("bank_account", "bank_account is an account number of that bank.")
InvalidAccountName = invalid_field("account_name", "account_name has 1 to 140 characters.")


class AlreadySubmitted(Exception):
    """The bank was told of the order, or may have been: it cannot be canceled."""


class NotOverdue(Exception):
    """Staff cannot end this transfer: the bank was not told of it, may still answer, or has answered."""


class NotSucceeded(Exception):
    """Staff cannot book this transfer as returned: it did not succeed here, or came back already."""
