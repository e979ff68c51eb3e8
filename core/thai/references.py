"""References in QR codes, with check characters by which a bank recognises the references of a biller.

Thai banks agree with a biller on check digits in reference 1. The sandbox bank and the service use a keyed
check, so that nobody else can invent a valid reference.
"""

import hmac

from core import ids

LENGTH = 20
# Digits and capitals are what every bank takes.
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# 36**5: one in 60 million guesses passes. The other 15 characters leave 77 bits of chance.
CHECK_LENGTH = 5


def new() -> str:
    """A random reference: one of 36**20, so collisions are practically impossible."""
    return ids.random_text(LENGTH, ALPHABET)


def new_checked(biller_id: str, secret: str) -> str:
    """A random reference of this biller that ends in its check characters."""
    text = ids.random_text(LENGTH - CHECK_LENGTH, ALPHABET)
    return text + _check(biller_id, text, secret)


def is_checked(biller_id: str, reference: str, secret: str) -> bool:
    """Whether this reference of the biller ends in valid check characters, which need the secret."""
    text, check = reference[:-CHECK_LENGTH], reference[-CHECK_LENGTH:]
    is_whole = len(reference) == LENGTH and reference.isascii()
    return is_whole and hmac.compare_digest(check, _check(biller_id, text, secret))


def _check(biller_id: str, text: str, secret: str) -> str:
    digest = hmac.digest(secret.encode(), f"reference1.{biller_id}.{text}".encode(), "sha256")
    return ids.written(int.from_bytes(digest[:8]), CHECK_LENGTH, ALPHABET)
