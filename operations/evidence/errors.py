from core.errors import StateError
from merchants.errors import RateLimitExceeded


class EvidenceNotReady(StateError):
    code = "evidence_not_ready"
    message = "No day of this payment has been closed yet. Its evidence is there after the nightly close."


class TooManyDocuments(RateLimitExceeded):
    message = "Another document is still being made. Try again in {retry_after} s."
