from core.errors import IdempotencyError, Invalid


class IdempotencyKeyReused(IdempotencyError):
    code = "idempotency_key_reused"
    message = "This idempotency key was used for a different request."


class IdempotencyKeyInProgress(IdempotencyError):
    code = "idempotency_key_in_progress"
    message = "A request with this idempotency key is still running. Try again shortly."


class InvalidIdempotencyKey(Invalid):
    code = "invalid_idempotency_key"
    message = "Idempotency-Key must be 1 to 255 printable characters. Received: {received}."
