from django.db import IntegrityError

from core.errors import AuthenticationError, NotFound, NotPermitted, RateLimitError, StateError

AuthenticationFailed = AuthenticationError.of(
    "authentication_failed", "The secret key is missing or not valid."
)


class InsufficientScope(NotPermitted):
    code = "insufficient_scope"
    message = "This key does not have the scope {scope}."


AddressNotAllowed = InsufficientScope.worded("This key may not be used from this address.")
MerchantSuspended = NotPermitted.of(
    "merchant_suspended",
    "This merchant is suspended. Money that arrives is kept. Ask the operator of the service.",
)
MerchantMoved = NotPermitted.of(
    "merchant_moved", "This merchant has moved to another instance of the service. Use its address."
)


def as_suspension(error: Exception) -> Exception:
    """MerchantSuspended or MerchantMoved, if that happened meanwhile and the database refused a row."""
    is_suspended = isinstance(error, IntegrityError) and " is suspended\n" in str(error)
    return MerchantSuspended() if is_suspended else MerchantMoved() if has_moved(error) else error


def has_moved(error: Exception) -> bool:
    """Whether the database refused a row because its merchant has moved."""
    return isinstance(error, IntegrityError) and " has moved\n" in str(error)


RateLimitExceeded = RateLimitError.of(
    "rate_limit_exceeded", "Too many requests with this key. Try again in {retry_after} s."
)
TooManyRefusedKeys = RateLimitError.of(
    "too_many_refused_keys",
    "Too many requests without a valid key from this address. Try again in {retry_after} s.",
)
TooManyExports = RateLimitError.of(
    "too_many_exports", "A CSV file of this merchant is being written. Try again in a second."
)
BankNotConfigured = StateError.of("bank_not_configured", "This merchant has no bank configured yet.")
MerchantNotFound = NotFound.of("merchant_not_found", "No merchant {id}.")
KeyNotRollable = StateError.of("key_not_rollable", "Key {id} is expired or revoked. Issue a new key.")
KeyNotFound = NotFound.of("key_not_found", "No key {id}.")
CallerNotAllowed = NotPermitted.of("caller_not_allowed", "This address is not in the bank's networks.")
