from typing import Annotated, TypedDict

from core.http.objects import Schema, between, up_to

HASH = Schema(pattern="^[0-9a-f]{64}$")


class EvidenceSeal(TypedDict):
    """What the operator signed of a day, for one merchant."""

    body: Annotated[
        str,
        "JSON, signed byte by byte: the day, the root of the hash tree of your payments, the hash of the "
        "daily close and of the one before it, and the newest link of the audit trail.",
    ]
    signature: Annotated[str, up_to(88), "Ed25519 (RFC 8032), in base64."]
    public_key: Annotated[
        str, up_to(44), "32 bytes in base64. Trust it only if the operator gave it to you in another way."
    ]


class Opening(TypedDict):
    """Personal data of which the text has the hash: SHA-256 of the salt, a line feed, and the text."""

    salt: Annotated[str, HASH]
    text: str


class PaymentEvidence(TypedDict):
    """A payment, and its place in a seal."""

    text: Annotated[
        str,
        "JSON, hashed byte by byte: the order and its code, what the bank reported, its messages, answers to "
        "inquiries, slips, refunds, postings, and the places of what staff did in the audit trail.",
    ]
    seal: Annotated[int, between(0), "Its place in `seals`."]
    number: Annotated[int, between(0), "Its leaf in the hash tree, from 0."]
    path: Annotated[list[Annotated[str, HASH]], "The hashes that lead from the leaf to the root (RFC 9162)."]
    opened: Annotated[dict[str, Opening], "What you may see of the personal data in `text`, by its hash."]


class EvidenceObject(TypedDict):
    """The evidence of payments. `thaiqr verify` says whether it is true, without the service."""

    version: Annotated[int, between(1, 1)]
    seals: list[EvidenceSeal]
    payments: list[PaymentEvidence]
