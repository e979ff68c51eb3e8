"""The second program: it counts a signed day of a proof page again, by another statement."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from operations.audit.daily_close import proofs, signing
from operations.models import ProofDay

SQL = Path(__file__).with_name("recount.sql").read_text()


def differences(proof: ProofDay) -> Iterator[str]:
    """What the signed day says otherwise than the rows."""
    said, close, closed = orjson.loads(proof.body), proof.close, orjson.loads(proof.close.body)
    if not signing.is_valid(proof.body, proof.signature, close.public_key):
        yield "the signature is not of this text"
    facts = proofs.count(proof.merchant_id, proof.day, closed, SQL)
    expected = proofs.document(proof.merchant_id, close, closed, facts)
    for name in sorted(expected.keys() | said.keys()):
        if expected.get(name) != said.get(name):
            yield f"{name}: signed {said.get(name)}, counted {expected.get(name)}"
