"""Whether the banks and acquirers of live merchants can be reached from here. Nothing is asked of them."""

from collections.abc import Mapping
from functools import partial

import requests
from django.conf import settings
from django.db import DatabaseError
from requests.exceptions import SSLError, Timeout

import banks
from banks import parallel
from config.deployment.findings import Finding, ok, problem, warning
from core import tls
from core.vault import CannotOpen
from merchants import bank_connections
from merchants.models import BankConnection

SECONDS = 5.0
# Different addresses that are tried. Merchants of one bank share its address.
MOST_ADDRESSES = 50
SILENT = "no answer in time"


def findings() -> list[Finding]:
    try:
        return reach(addresses())
    except DatabaseError:
        return []  # the part about PostgreSQL says why
    except CannotOpen:
        advice = "Add the key that encrypted the credentials to FIELD_ENCRYPTION_KEYS."
        return [problem("banks", "credentials cannot be decrypted", advice)]


def addresses() -> dict[str, str]:
    """The addresses of all APIs that live merchants use, with the name of the bank or acquirer."""
    found = {settings.OMISE_API_URL: "omise"} if settings.OMISE_SECRET_KEY else {}
    for connection in BankConnection.objects.select_related("merchant").iterator():
        credentials = bank_connections.decrypt(connection).credentials
        for field in banks.LIVE_BANKS[connection.bank].credential_fields:
            if field.is_url and field.name in credentials:
                found[credentials[field.name]] = connection.bank
        if len(found) >= MOST_ADDRESSES:
            break
    return found


def reach(named: Mapping[str, str]) -> list[Finding]:
    """Call all addresses side by side. Any answer shows that the bank is there."""
    reasons = parallel.run_all([partial(_reason, url) for url in named], default=SILENT)
    advice = "Let this machine out to it (firewall, DNS, proxy), or ask the bank."
    return [
        warning(f"bank {name}", f"{url}: {reason}", advice)
        if reason
        else ok(f"bank {name}", f"{url} answers")
        for (url, name), reason in zip(named.items(), reasons, strict=True)
    ]


def _reason(url: str) -> str:
    """Why the address gives no answer; empty if it does."""
    try:
        requests.head(url, timeout=SECONDS, allow_redirects=False, verify=tls.ca_file())
    except SSLError:
        return "its certificate is refused"
    except Timeout:
        return SILENT
    except OSError:  # all other errors of requests, or an unreadable CA_BUNDLE
        return "it cannot be reached"
    return ""
