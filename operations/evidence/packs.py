"""The evidence of payments as a file that proves itself.

It is the state at the newest close that sealed the payment, and has nothing that was not signed then.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from core import vault
from core.console import personal_data
from operations.audit.daily_close import payment_records, sealing
from operations.evidence.errors import EvidenceNotReady
from operations.evidence.shapes import EvidenceObject, Opening, PaymentEvidence
from operations.models import EvidenceSeal, PaymentEvidence as Row

VERSION = 1
MASKED = "masked_sha256"
# Read together: about 4 MB of memory.
BATCH = 500
Follow = Callable[[Iterable[Any]], Iterable[Any]]


def of_payment(payment_id: str) -> EvidenceObject:
    """Raises EvidenceNotReady."""
    return check(pack([payment_id]))


def check(made: EvidenceObject) -> EvidenceObject:
    """Raises EvidenceNotReady if it is of no payment."""
    if not made["payments"]:
        raise EvidenceNotReady
    return made


def pack(payment_ids: Sequence[str], *, follow: Follow = iter) -> EvidenceObject:
    """The evidence of those that are sealed, with the personal data that the present reader may see.

    follow: passes the payments on, while a worker shows its progress.
    """
    seals: dict[str, EvidenceSeal] = {}
    payments = [
        _payment(row, place=list(seals).index(row.seal_id), opened=opened)
        for row, opened in follow(_rows(payment_ids))
        if seals.setdefault(row.seal_id, row.seal)
    ]
    signed = [
        {"body": each.body, "signature": each.signature, "public_key": each.close.public_key}
        for each in seals.values()
    ]
    return {"version": VERSION, "seals": signed, "payments": payments}  # type: ignore[typeddict-item]


def _rows(payment_ids: Sequence[str]) -> Iterator[tuple[Row, dict[str, Opening]]]:
    for start in range(0, len(payment_ids), BATCH):
        wanted = payment_ids[start : start + BATCH]
        found = Row.objects.filter(payment_id__in=wanted).select_related("seal__close")
        newest = found.order_by("payment_id", "-seal__close_id").distinct("payment_id")
        records = payment_records.read(wanted)
        for row in newest.defer("seal__nodes", "seal__close__body"):
            yield row, _opened(row, records[row.payment_id])


def _payment(row: Row, *, place: int, opened: dict[str, Opening]) -> PaymentEvidence:
    path = sealing.path_of(row)
    return {"text": row.text, "seal": place, "number": row.number, "path": path, "opened": opened}


def _opened(row: Row, record: payment_records.Record) -> dict[str, Opening]:
    """What the signed text has the hash of. Other data came later, and erased data is gone."""
    if not row.seed_sealed:
        return {}
    seed = vault.open_sealed(row.seed_sealed, context=row.context)
    hides = personal_data.is_hidden()
    found = {
        payment_records.hash_of(opening): opening
        for hidden in payment_records.hidden_of(record)
        for form, opening in hidden.openings(seed).items()
        if form == MASKED or not hides
    }
    return {hash: opening for hash, opening in found.items() if hash in row.text}  # type: ignore[misc]
