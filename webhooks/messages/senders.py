"""Send a message to a LINE chat or an email address. Never call this inside a transaction."""

import asyncio
import smtplib
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import ip_network
from uuid import UUID, uuid5

import orjson
from django.conf import settings
from django.core.mail import EmailMessage

from merchants.models import Mode
from webhooks.http import client
from webhooks.http.url_check import UrlPolicy
from webhooks.messages import texts
from webhooks.models import Endpoint, EndpointType
from webhooks.sending import USER_AGENT

# The operator chose the address of LINE and of the mail server, not a merchant.
_ANYWHERE = UrlPolicy(allowed_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")), allow_http=True)
# LINE accepts a key once within 24 hours, and answers 409 to a second message with it.
_RETRY_KEYS = UUID("6f0d2a53-3d7e-5c0b-9b8e-6a4b1d6f7c11")
HTTP_CONFLICT, SMTP_OK = 409, 250
# Emails that a process sends at once. Django's backend blocks its thread.
MAX_EMAILS = 8
# The first matching type gives the error.
_ERRORS = (
    (TimeoutError, "timeout"),
    (smtplib.SMTPServerDisconnected, "reset"),
    (smtplib.SMTPException, "protocol"),
    (socket.gaierror, "dns"),
    *client.CONNECT_ERRORS,
)
_threads = ThreadPoolExecutor(MAX_EMAILS, "emails")


async def send(
    endpoint: Endpoint,
    *,
    message_id: str,
    bodies: Sequence[bytes],
    more: int,
    merchant_name: str,
    merchant_mode: str | None,
    timeouts: client.Timeouts,
) -> client.PostResult:
    """Send one message about these events, and the number of others. Never raises for the network.

    message_id: the same in each attempt.
    Runs in the loop of `webhooks.http.event_loop`.
    """
    sender = merchant_name or "Thai QR Payments"
    sender += " (test)" if merchant_mode == Mode.TEST else ""
    message = texts.write(bodies, more=more, sender=sender, language=endpoint.language)
    if endpoint.type == EndpointType.LINE:
        return await _send_to_line(endpoint, message_id, message, timeouts)
    return await _send_email(endpoint, message_id, message, timeouts)


async def _send_to_line(
    endpoint: Endpoint, message_id: str, message: texts.Message, timeouts: client.Timeouts
) -> client.PostResult:
    """https://developers.line.biz/en/reference/messaging-api/#send-push-message"""
    result = await client.post(
        f"{settings.LINE_API_URL}/v2/bot/message/push",
        body=orjson.dumps({"to": endpoint.recipient, "messages": [{"type": "text", "text": message.text}]}),
        headers={
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            "authorization": f"Bearer {endpoint.secret}",
            "x-line-retry-key": str(uuid5(_RETRY_KEYS, message_id)),
        },
        policy=_ANYWHERE,
        merchant_id=endpoint.merchant_id or "",
        timeouts=timeouts,
    )
    # An earlier attempt had arrived, and told of the same events.
    return replace(result, error="") if result.status == HTTP_CONFLICT else result


async def _send_email(
    endpoint: Endpoint, message_id: str, message: texts.Message, timeouts: client.Timeouts
) -> client.PostResult:
    """A mail server that does not answer holds a thread for EMAIL_TIMEOUT, and the attempt until its end."""
    mail = EmailMessage(
        message.subject,
        message.text,
        settings.EMAIL_FROM,
        [endpoint.recipient],
        # The same in each attempt, so that a repeated email can be recognised.
        headers={
            "Message-ID": f"<{message_id}@{settings.EMAIL_FROM.rpartition('@')[2]}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    started, status, error, excerpt = time.monotonic(), None, "", ""
    try:
        async with asyncio.timeout(timeouts.total):
            await asyncio.get_running_loop().run_in_executor(_threads, mail.send)
        status = SMTP_OK
    except smtplib.SMTPRecipientsRefused as refusal:
        status, error, excerpt = _refusal(*next(iter(refusal.recipients.values())))
    except smtplib.SMTPResponseException as refusal:
        status, error, excerpt = _refusal(refusal.smtp_code, refusal.smtp_error)
    except (OSError, smtplib.SMTPException) as failure:
        error = next(name for error_type, name in _ERRORS if isinstance(failure, error_type))
    milliseconds = round((time.monotonic() - started) * 1000)
    # Mail servers repeat the address, which goes when the destination is deleted.
    excerpt = excerpt.replace(endpoint.recipient, "***")
    return client.PostResult(status, error, excerpt, milliseconds, peer=None, retry_after=None)


def _refusal(code: int, answer: bytes | str) -> tuple[int | None, str, str]:
    """The code of a refusal by the mail server, the error, and the words."""
    if not 200 <= code <= 599:  # -1: the answer is not SMTP
        return None, "protocol", ""
    words = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return code, f"smtp_{code // 100}xx", f"{code} {words}".replace("\0", "")[: client.MAX_EXCERPT_BYTES]
