"""Whether the evidence of payments, or a day of a proof page, is true, without the service and its word.

What a reader has to trust is the public key of the operator: get it, or its fingerprint, in another way than
the file. docs/evidence.md of the service says how the file is made.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

VERSION = 1
HASH = re.compile("[0-9a-f]{64}")
MEMBERS = {"version": int, "seals": list, "payments": list}
OF_SEAL = {"body": str, "signature": str, "public_key": str}
OF_PAYMENT = {"text": str, "seal": int, "number": int, "path": list, "opened": dict}
OF_OPENING = {"salt": str, "text": str}


class NotTrue(ValueError):
    """The evidence is not what the operator signed. The text says why."""


@dataclass(frozen=True)
class VerifiedPayment:
    """A payment as it was when the day was closed.

    record: the signed text, with hashes in the place of personal data. opened: the text of each hash that
    the file opens.
    """

    payment_id: str
    day: str
    closed_at: str
    record: dict[str, Any]
    opened: dict[str, str]


@dataclass(frozen=True)
class Verified:
    """Evidence that is true, if one trusts the keys with these fingerprints."""

    payments: list[VerifiedPayment]
    fingerprints: list[str]
    # Of the signed day of a proof page, which has no payments.
    proof: dict[str, Any] | None = None


def verify(pack: str | bytes, *, key: str | None = None, payment_id: str | None = None) -> Verified:
    """Check each byte that says something. Raises NotTrue.

    key: the public key that signed, in base64, or its fingerprint ("SHA256:..."). Without it you have to
    compare the fingerprints of the result. payment_id: the only payment that it must be about.
    """
    try:
        return _verified(json.loads(pack, object_pairs_hook=_no_member_twice), key, payment_id)
    except NotTrue:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotTrue(f"the file or a signed text has another form: {error}") from None


def _verified(given: Any, key: str | None, payment_id: str | None) -> Verified:
    if payment_id is None and isinstance(given, dict) and "body" in given:
        proof = _signed(given, key, "the file", "proof")
        return Verified([], [fingerprint(given["public_key"])], proof)
    _check(given, MEMBERS, "the file")
    if given["version"] != VERSION:
        raise NotTrue(f"version {given['version']} is unknown to this program")
    seals = [_signed(each, key, "a seal", "evidence") for each in given["seals"]]
    payments = [_payment(each, seals) for each in given["payments"]]
    if not payments or {each["seal"] for each in given["payments"]} != set(range(len(seals))):
        raise NotTrue("the file has no payments, or a seal of none")
    names = [each.payment_id for each in payments]
    if len(set(names)) != len(names):
        raise NotTrue("a payment is there twice")
    if payment_id is not None and names != [payment_id]:
        raise NotTrue(f"the file is of {', '.join(names[:3])}, not of {payment_id}")
    keys = dict.fromkeys(fingerprint(each["public_key"]) for each in given["seals"])
    return Verified(payments, list(keys))


def fingerprint(public_key: str) -> str:
    """The short name of a public key, which people compare: "SHA256:..."."""
    digest = hashlib.sha256(base64.b64decode(public_key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _signed(given: Any, key: str | None, what: str, kind: str) -> dict[str, Any]:
    _check(given, OF_SEAL, what)
    signature, public_key = _bytes(given["signature"], 64), _bytes(given["public_key"], 32)
    if key is not None and key not in (given["public_key"], fingerprint(given["public_key"])):
        raise NotTrue(f"it is signed with another key: {fingerprint(given['public_key'])}")
    if not _is_signed(given["body"], signature, public_key):
        raise NotTrue(f"the signature is not of {what}")
    body = json.loads(given["body"], object_pairs_hook=_no_member_twice)
    # The same key also signs daily closes.
    if body.get("kind") != kind or body.get("version") != VERSION:
        raise NotTrue(f"the signed text is no seal of {kind}")
    return dict(body)


def _is_signed(text: str, signature: bytes, public_key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _payment(payment: Any, seals: list[dict[str, Any]]) -> VerifiedPayment:
    _check(payment, OF_PAYMENT, "a payment")
    if not 0 <= payment["seal"] < len(seals):
        raise NotTrue("a payment names a seal that is not there")
    seal, text = seals[payment["seal"]], payment["text"]
    leaf = hashlib.sha256(b"\0" + text.encode()).digest()
    if _root(leaf, payment["number"], seal["payments"], payment["path"]) != seal["root"]:
        raise NotTrue("a payment is not the one that was sealed")
    record = json.loads(text)
    if record["payment"]["merchant"]["merchant_id"] != seal["merchant_id"]:
        raise NotTrue("a payment is of another merchant than its seal")
    opened = dict(_opened(payment["opened"], set(_hashes(record))))
    return VerifiedPayment(record["payment"]["payment_id"], seal["day"], seal["closed_at"], record, opened)


def _root(node: bytes, number: int, count: int, path: list[str]) -> str:
    """The root that a leaf and its path lead to (RFC 9162, 2.1.3.2), in hex."""
    if not 0 <= number < count or not all(isinstance(each, str) and HASH.fullmatch(each) for each in path):
        raise NotTrue("the path of a payment has another form")
    rest = [bytes.fromhex(each) for each in path]
    while count > 1:
        if number ^ 1 < count:
            if not rest:
                raise NotTrue("the path of a payment is too short")
            other = rest.pop(0)
            pair = other + node if number % 2 else node + other
            node = hashlib.sha256(b"\1" + pair).digest()
        number, count = number // 2, (count + 1) // 2
    if rest:
        raise NotTrue("the path of a payment is too long")
    return node.hex()


def _opened(opened: dict[str, Any], hashes: set[str]) -> Iterator[tuple[str, str]]:
    """The texts of the hashes that the signed text has."""
    for name, opening in opened.items():
        _check(opening, OF_OPENING, "an opening")
        salted = f"{opening['salt']}\n{opening['text']}".encode()
        if not HASH.fullmatch(opening["salt"]) or hashlib.sha256(salted).hexdigest() != name:
            raise NotTrue("personal data is not that of its hash")
        if name not in hashes:
            raise NotTrue("personal data is of no hash in the signed text")
        yield name, opening["text"]


def _hashes(node: Any) -> Iterator[str]:
    """The hashes that stand for personal data."""
    if isinstance(node, dict):
        yield from (node[name] for name in ("sha256", "masked_sha256") if isinstance(node.get(name), str))
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _hashes(each)


def _check(found: Any, members: Mapping[str, type], what: str) -> None:
    """Exactly these members, of these types."""
    if not isinstance(found, dict) or found.keys() != members.keys():
        raise NotTrue(f"{what} has other members than {', '.join(members)}")
    for name, kind in members.items():
        if type(found[name]) is not kind:
            raise NotTrue(f"{name} of {what} has another type")


def _bytes(text: str, length: int) -> bytes:
    """The bytes of the only base64 of them."""
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        raise NotTrue("a signature or a key is no base64") from None
    if len(found) != length or base64.b64encode(found).decode() != text:
        raise NotTrue("a signature or a key has another form")
    return found


def _no_member_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotTrue("a member is there twice")
    return found
