from core.errors import NotFound, StateError

WithdrawalNotFound = NotFound.of("withdrawal_not_found", "No withdrawal {id}.")
WithdrawalNotCancelable = StateError.of(
    "withdrawal_not_cancelable", "This withdrawal is {status}; only a pending withdrawal can be canceled."
)
