from core.errors import Invalid, NotFound


class WithdrawalNotFound(NotFound):
    code = "withdrawal_not_found"
    message = "No withdrawal {id}."


class WithdrawalNotCancelable(Invalid):
    code = "withdrawal_not_cancelable"
    message = "This withdrawal is {status}; only a pending withdrawal can be canceled."
