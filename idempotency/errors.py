from core.errors import IdempotencyError, Invalid

IdempotencyKeyReused = IdempotencyError.of(
    "idempotency_key_reused", "This idempotency key was used for a different request."
)
IdempotencyKeyInProgress = IdempotencyError.of(
    "idempotency_key_in_progress", "A request with this idempotency key is still running. Try again shortly."
)
InvalidIdempotencyKey = Invalid.of(
    "invalid_idempotency_key", "Idempotency-Key must be 1 to 255 printable characters. Received: {received}."
)
