"""The messages of errors that need a bank, an acquirer, load or a fault, word for word.

The tests that provoke these errors compare them by `check_error`.
"""

from collections.abc import Mapping
from typing import Any

MESSAGES = {
    "acquirer_unavailable": "The acquirer does not answer at the moment. Nothing was stored; try again "
    "shortly.",
    "caller_not_allowed": "This address is not in the bank's networks.",
    "card_declined": "The card was declined.",
    "claim_link_not_found": "Refund {id} has no claim link.",
    "clock_limit_reached": "A clock goes 90 days forward: {seconds_left} s are left. DELETE starts it anew.",
    "clock_not_advanceable": "More than {limit} codes, deliveries, transfers or reports of the bank wait. "
    "Expire codes first.",
    "destination_not_found": "No destination {id}.",
    "delivery_not_redeliverable": "The webhook of this delivery is disabled, so nothing is sent to it.",
    "email_not_configured": "This service cannot send emails. Its operator has set no mail server.",
    "exception_not_acceptable": "This exception cannot be accepted: {why}.",
    "exception_not_found": "No exception {id}.",
    "exception_not_returnable": "This exception cannot be returned: {why}.",
    "expired_card": "The card has expired.",
    "idempotency_key_in_progress": "A request with this idempotency key is still running. Try again shortly.",
    "insufficient_funds": "The card has insufficient funds.",
    "insufficient_scope": "This key does not have the scope {scope}.",
    "internal_error": "An internal error occurred. Try again. If the error stays, report the request id.",
    "invalid_host": "The Host header does not name this service.",
    "invalid_order": "{param} of the order is missing or malformed.",
    "invalid_order_signature": "The signature of the order is missing, wrong or too old.",
    "invalid_signature": "The signature is missing, wrong or too old.",
    "merchant_moved": "This merchant has moved to another instance of the service. Use its address.",
    "merchant_suspended": "This merchant is suspended. Money that arrives is kept. Ask the operator of the "
    "service.",
    "order_not_found": "The bank has no order with this reference.",
    "order_reference_reused": "Another order has this reference.",
    "partial_refund_not_supported": "The bank of this payment supports only a full refund: {whole}.",
    "payout_account_not_allowed": "{account} is not on the merchant's list of payout accounts.",
    "payout_account_too_new": "{account} is on the list of payout accounts, but can be used only from "
    "{usable_at}.",
    "payment_not_held": "This payment is not held: `hold` is null.",
    "processing_error": "The acquirer could not process the card.",
    "rate_limit_exceeded": "Too many requests with this key. Try again in {retry_after} s.",
    "reference_in_use": "QR code {id} has this reference and is open. Show it again, or expire it first.",
    "request_timeout": "The request body did not arrive in time.",
    "safe_mode": "The operator has paused card payments. Nothing was stored; try again later.",
    "service_unavailable": "The service cannot answer right now. Try again shortly.",
    "token_already_used": "This token was already used. Create a new token for the card.",
    "too_many_card_payments": "Too many card payments are in progress. Nothing was stored; try again "
    "shortly.",
    "too_many_destinations": "There can be {limit} destinations at most. Delete one before you create "
    "another.",
    "too_many_exports": "A CSV file of this merchant is being written. Try again in a second.",
    "too_many_refused_keys": "Too many requests without a valid key from this address. Try again in "
    "{retry_after} s.",
    "too_many_webhooks": "A merchant has at most {limit} webhooks. Delete one before you create another.",
}


def check_error(body: Mapping[str, Any], code: str, **values: object) -> None:
    """The body of a response is this error, with its message word for word.

    values: what the message names.
    """
    error = body["error"]
    assert (error["code"], error["message"]) == (code, MESSAGES[code].format(**values))
