"""The files of evidence: JSON that proves itself, and a PDF of the same."""

import orjson
from django.http import HttpResponse

from core.work.bulkhead import Bulkhead, BulkheadFull
from operations.evidence.errors import TooManyDocuments
from operations.evidence.shapes import EvidenceObject

JSON, PDF = "json", "pdf"
CONTENT_TYPES = {JSON: "application/json", PDF: "application/pdf"}

# A PDF takes 0.4 s of CPU.
WRITTEN_AT_ONCE, WAIT_SECONDS = 2, 2.0
"""In this process. Whoever asks has one at once."""
_slots = Bulkhead()


def write(pack: EvidenceObject, format: str) -> bytes:
    if format == JSON:
        return orjson.dumps(pack)
    # Only here, because the library of documents is large.
    from operations.evidence import document

    return document.write(pack)


def respond(pack: EvidenceObject, format: str, payment_id: str, *, key: str) -> HttpResponse:
    """key: of the merchant or person who asks. Raises TooManyDocuments."""
    headers = {"Content-Disposition": f'attachment; filename="evidence-{payment_id}.{format}"'}
    try:
        with _slots.hold(key, total=WRITTEN_AT_ONCE, share=1, wait_seconds=WAIT_SECONDS):
            content = write(pack, format)
    except BulkheadFull:
        raise TooManyDocuments(retry_after=1) from None
    return HttpResponse(content, content_type=CONTENT_TYPES[format], headers=headers)
