from core.errors import StateError
from merchants.errors import RateLimitExceeded

EvidenceNotReady = StateError.of(
    "evidence_not_ready",
    "No day of this payment has been closed yet. Its evidence is there after the nightly close.",
)
TooManyDocuments = RateLimitExceeded.worded(
    "Another document is still being made. Try again in {retry_after} s."
)
