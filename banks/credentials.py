"""The credentials that adapters need of a merchant, and the check of each."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from django.utils.translation import gettext as _

MIN_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class CredentialField:
    """One credential that an adapter needs."""

    name: str
    help: str  # for staff who connect a merchant
    normalise: Callable[[str], str]  # returns the text to store; raises ValueError
    is_secret: bool = True
    default: str | None = None  # used if none is given; None makes the credential required
    is_text: bool = False  # it has several lines
    domains: tuple[str, ...] = ()  # of the bank, for a URL

    def check_host(self, value: str, others: Sequence[str]) -> None:
        """Check that a URL is the bank's, of one of the `others`, or loopback. Raises ValueError.

        Otherwise whoever connects a merchant can have its secrets sent to a server of their own.
        """
        if not self.is_url or is_loopback(value):
            return
        host = urlsplit(value).hostname or ""
        if not any(host == domain or host.endswith(f".{domain}") for domain in (*self.domains, *others)):
            text = _("must be an address of %(domains)s, or of the setting BANK_API_HOSTS")
            raise ValueError(text % {"domains": ", ".join(self.domains)})

    @property
    def is_url(self) -> bool:
        """Whether our requests, with the secrets, go to this address."""
        return self.normalise is url


class InvalidCredential(ValueError):
    """The credential `name` is missing, unknown or malformed."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def validate_credentials(fields: tuple[CredentialField, ...], given: Mapping[str, object]) -> dict[str, str]:
    """The credentials to store. Raises InvalidCredential for the first error, without repeating a secret."""
    known = {field_.name for field_ in fields}
    if unknown := sorted(set(given) - known):
        raise InvalidCredential(unknown[0], f"unknown credential; known are {', '.join(sorted(known))}")
    return {field_.name: _validated(field_, given.get(field_.name, field_.default)) for field_ in fields}


def _validated(field_: CredentialField, value: object) -> str:
    if value is None:
        raise InvalidCredential(field_.name, f"is missing: {field_.help}")
    if not isinstance(value, str):
        raise InvalidCredential(field_.name, "is not a text")
    try:
        return field_.normalise(value)
    except ValueError as error:
        raise InvalidCredential(field_.name, str(error)) from None


def text(value: str) -> str:
    """Printable characters without spaces, such as a key or secret."""
    found = value.strip()
    if not re.fullmatch("[!-~]{1,500}", found):
        raise ValueError(_("must have 1 to 500 printable characters without spaces"))
    return found


def url(value: str) -> str:
    """A URL with https, or with http for loopback addresses."""
    found = value.strip().rstrip("/")
    parts, is_url = urlsplit(found), False
    with suppress(ValueError):  # of an impossible port
        is_url = parts.port != 0 and bool(re.fullmatch(r"https?://[^\s?#@]+", found) and parts.hostname)
    if not is_url:
        raise ValueError(_("is not a URL such as https://api.bank.example/v1"))
    if parts.scheme != "https" and not is_loopback(found):
        raise ValueError(_("must begin with https://"))
    return found


def path(value: str) -> str:
    found = value.strip()
    if not re.fullmatch(r"(/[0-9A-Za-z._~-]+)+", found):
        raise ValueError(_("is not a path such as /biller/v1/inquiry"))
    return found


def api_url(default: str, domain: str) -> CredentialField:
    """The URL of a bank's API, which has this domain."""
    return CredentialField(
        "api_url", "URL of its API", url, is_secret=False, default=default, domains=(domain,)
    )


def api_path(name: str, help: str, default: str) -> CredentialField:
    return CredentialField(name, help, path, is_secret=False, default=default)


def public_key(value: str) -> str:
    """An RSA public key in PEM."""
    if not _is_rsa_key(lambda: load_pem_public_key(value.encode())):
        raise ValueError(
            _("is not an RSA public key in PEM of at least %(bits)s bits") % {"bits": MIN_RSA_BITS}
        )
    return value.strip() + "\n"


def private_key(value: str) -> str:
    """An RSA private key in PEM without a passphrase, because we store it encrypted."""
    if not _is_rsa_key(lambda: load_pem_private_key(value.encode(), password=None)):
        raise ValueError(
            _("is not an RSA private key in PEM of at least %(bits)s bits without a passphrase")
            % {"bits": MIN_RSA_BITS}
        )
    return value.strip() + "\n"


def _is_rsa_key(load: Callable[[], object]) -> bool:
    try:
        key = load()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return isinstance(key, RSAPublicKey | RSAPrivateKey) and key.key_size >= MIN_RSA_BITS


def is_loopback(address: str) -> bool:
    """Whether the host of a URL is a loopback address. Names are not looked up."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
