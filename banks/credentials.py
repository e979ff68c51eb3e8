"""What an adapter needs to know of a merchant's account at its bank, and how each of it is judged."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

MIN_RSA_BITS = 2048  # bits


@dataclass(frozen=True, slots=True)
class CredentialField:
    """One credential. normalised: the text as it is kept; raises ValueError.

    help: for whoever connects a merchant. default: used where none is given; None makes it required.
    """

    name: str
    help: str
    normalise: Callable[[str], str]
    is_secret: bool = True
    default: str | None = None


class InvalidCredential(ValueError):
    """A credential is missing, unknown or malformed: `name` says which."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def validate_credentials(fields: tuple[CredentialField, ...], given: Mapping[str, object]) -> dict[str, str]:
    """The credentials as they are kept. Raises Unmet for the first at fault; its text repeats no secret."""
    known = {field_.name for field_ in fields}
    if unknown := sorted(set(given) - known):
        raise InvalidCredential(
            unknown[0], f"there is no such credential; known are {', '.join(sorted(known))}"
        )
    return {field_.name: _validated(field_, given.get(field_.name, field_.default)) for field_ in fields}


def _validated(field_: CredentialField, value: object) -> str:
    if value is None:
        raise InvalidCredential(field_.name, f"is missing: {field_.help}")
    if not isinstance(value, str):
        raise InvalidCredential(field_.name, "is no text")
    try:
        return field_.normalise(value)
    except ValueError as error:
        raise InvalidCredential(field_.name, str(error)) from None


def text(value: str) -> str:
    """Printable characters without spaces, as keys and secrets are."""
    found = value.strip()
    if not re.fullmatch("[!-~]{1,500}", found):
        raise ValueError("has 1 to 500 printable characters without spaces")
    return found


def url(value: str) -> str:
    """An address that begins with https; http is for this machine alone."""
    found = value.strip().rstrip("/")
    parts = urlsplit(found)
    if not re.fullmatch(r"https?://[^\s?#@]+", found) or not parts.hostname or not _has_valid_port(parts):
        raise ValueError("is no address such as https://api.bank.example/v1")
    if parts.scheme != "https" and not is_loopback(found):
        raise ValueError("must begin with https://")
    return found


def path(value: str) -> str:
    found = value.strip()
    if not re.fullmatch(r"(/[0-9A-Za-z._~-]+)+", found):
        raise ValueError("is no path such as /biller/v1/inquiry")
    return found


def public_key(value: str) -> str:
    """An RSA public key in PEM."""
    try:
        key = load_pem_public_key(value.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey) or key.key_size < MIN_RSA_BITS:
        raise ValueError(f"is no RSA public key in PEM of at least {MIN_RSA_BITS} bits")
    return value.strip() + "\n"


def private_key(value: str) -> str:
    """An RSA private key in PEM, without a passphrase: it is kept sealed."""
    try:
        key = load_pem_private_key(value.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey) or key.key_size < MIN_RSA_BITS:
        raise ValueError(f"is no RSA private key in PEM of at least {MIN_RSA_BITS} bits without a passphrase")
    return value.strip() + "\n"


def is_loopback(address: str) -> bool:
    """Whether `address` (a URL) is on this machine by its number; names are not looked up."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False
