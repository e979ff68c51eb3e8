"""The `failure_code` of a payment, refund or withdrawal. The service's page of errors explains each code."""

RETRYABLE = frozenset({"bank_unreachable", "declined_by_bank", "never_arrived", "processing_error"})
"""After these codes, the same may succeed if it is created again, with nothing changed."""
