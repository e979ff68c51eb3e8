from core.errors import NotFound, StateError


class WithdrawalNotFound(NotFound):
    code = "withdrawal_not_found"
    message = "No withdrawal {id}."


class WithdrawalNotCancelable(StateError):
    code = "withdrawal_not_cancelable"
    message = "This withdrawal is {status}; only a pending withdrawal can be canceled."
