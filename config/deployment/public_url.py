"""BASE_URL as merchants reach it: TLS, its certificate, and whether the service answers there."""

import ssl
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from django.conf import settings

from config.checks import is_local
from config.deployment.findings import Finding, judge, ok, problem, warning
from core import tls

SECONDS = 5.0
RENEW_DAYS = 14
REACH_ADVICE = (
    "Check DNS, the proxy and the firewall. Some networks do not let a machine call its own public address."
)
TRUST_ADVICE = (
    "Let the proxy send a valid certificate with its whole chain (fullchain.pem). If it is of your own "
    "authority, set CA_BUNDLE: until then test payments stay pending."
)


def findings(now: datetime) -> list[Finding]:
    parts = urlsplit(settings.BASE_URL)
    host = parts.hostname or ""
    if not host or not tls.has_certificates(tls.ca_file()):
        return []  # the settings say so
    if parts.scheme == "https":
        return over_tls(host, parts.port or 443, now)
    if is_local(host):
        return [warning("BASE_URL", "http, on this machine only", "Merchants need an https address.")]
    return [problem("BASE_URL", "http: keys and payments cross the internet openly", "Use https.")]


def over_tls(host: str, port: int, now: datetime) -> list[Finding]:
    trusted = ssl.create_default_context(cafile=tls.ca_file())
    connection = HTTPSConnection(host, port, timeout=SECONDS, context=trusted)
    try:
        connection.connect()
        found = [certificate(connection.sock, now)]
        return [*found, health_check(connection)]
    except ssl.SSLCertVerificationError as error:
        return [problem("BASE_URL TLS", f"the certificate is refused: {error.verify_message}", TRUST_ADVICE)]
    except (OSError, HTTPException) as error:
        return [warning("BASE_URL", f"cannot be reached from here: {error}", REACH_ADVICE)]
    finally:
        connection.close()


def certificate(connected: ssl.SSLSocket, now: datetime) -> Finding:
    ends = ssl.cert_time_to_seconds(str((connected.getpeercert() or {})["notAfter"]))
    days = (datetime.fromtimestamp(ends, UTC) - now).days
    found = f"{connected.version()}, the certificate is valid for {days} more days"
    advice = "Renew the certificate, and look why it was not renewed by itself."
    return judge("BASE_URL TLS", found, advice, is_warning=days < RENEW_DAYS)


def health_check(connection: HTTPConnection) -> Finding:
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    if status != 200:
        advice = "Start web, and let the proxy pass requests on to HOST and PORT."
        return problem("BASE_URL", f"/healthz answers {status}", advice)
    return ok("BASE_URL", "the service answers")
