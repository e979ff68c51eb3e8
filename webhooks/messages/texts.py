"""What a message to people says: a line for each event, in the language of the destination.

An event has no names and no accounts of payers. Of a reference only the last characters are shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext, pgettext_lazy

from core import clock, money
from webhooks.models import DESTINATION_PING, EventType, StaffEventType

REFERENCE_LENGTH = 4
WORDS: dict[str, str | Promise] = {
    EventType.PAYMENT_SUCCEEDED: pgettext_lazy("message", "Paid"),
    EventType.PAYMENT_FAILED: gettext_lazy("Not paid"),
    EventType.PAYMENT_PENDING: gettext_lazy("Waiting for payment"),
    EventType.PAYMENT_FEE_KNOWN: gettext_lazy("Fee of a payment known"),
    EventType.PAYMENT_HOLD_LIFTED: gettext_lazy("Hold lifted, it can be shipped"),
    EventType.PAYMENT_EXCEPTION: gettext_lazy("Money that does not fit a payment"),
    EventType.PAYMENT_EXCEPTION_RESOLVED: gettext_lazy("Decided about money that did not fit"),
    EventType.WITHDRAWAL_PENDING: gettext_lazy("Withdrawal requested"),
    EventType.WITHDRAWAL_PROCESSED: gettext_lazy("Withdrawal sent to the bank"),
    EventType.WITHDRAWAL_SUCCEEDED: gettext_lazy("Withdrawal arrived"),
    EventType.WITHDRAWAL_FAILED: gettext_lazy("Withdrawal failed"),
    EventType.REFUND_COMPLETED: gettext_lazy("Refund sent"),
    EventType.REFUND_FAILED: gettext_lazy("Refund failed"),
    EventType.SETTLEMENT_ARRIVED: gettext_lazy("Money of card payments arrived"),
    StaffEventType.APPROVAL_REQUESTED: gettext_lazy("Waits for your approval"),
    StaffEventType.EXCEPTION_OPENED: gettext_lazy("New exception"),
    StaffEventType.ENDPOINT_PAUSED: gettext_lazy("Webhook paused"),
    StaffEventType.BACKUP_LATE: gettext_lazy("Backup late"),
    StaffEventType.JOB_FAILED: gettext_lazy("Nightly job failed"),
    DESTINATION_PING: gettext_lazy("Test message"),
}


@dataclass(frozen=True, slots=True)
class Message:
    subject: str
    text: str


def write(bodies: Sequence[bytes], *, more: int, sender: str, language: str) -> Message:
    """Write the message about these events, the first of which is its subject. more: counted, not shown.

    sender: the name of the shop or of the service.
    """
    with translation.override(language):
        events = [orjson.loads(body) for body in bodies]
        first, others = _what(events[0]), len(events) - 1 + more
        subject = f"{sender}: {first}" + (f" (+{others:,})" if others else "")
        lines = [sender, *map(_line, events)]
        if more:
            text = ngettext("and %(count)s more event", "and %(count)s more events", more)
            lines.append(text % {"count": more})
        return Message(subject, "\n".join(lines))


def _line(event: Mapping[str, Any]) -> str:
    data, at = event["data"], datetime.fromisoformat(event["timestamp"])
    parts = [
        _what(event),
        data.get("hold") and _("do not ship yet: ask the customer who paid"),
        data.get("detail") and _(data["detail"]),
        clock.display_to_payer(at),
        _address(event),
    ]
    if reference := data.get("reference"):
        shown = {"end": str(reference)[-REFERENCE_LENGTH:]}
        parts.insert(1, _("reference …%(end)s") % shown)
    return "\n".join(filter(None, [", ".join(filter(None, parts[:-1])), parts[-1]]))


def _what(event: Mapping[str, Any]) -> str:
    data = event["data"]
    amount = data.get("exception", data).get("amount") or data.get("net")
    words = str(WORDS[event["event"]])
    return words if amount is None else f"{words} {money.with_sign(amount)}"


def _address(event: Mapping[str, Any]) -> str:
    """The payment page of a code, or where staff find what the event is about."""
    data = event["data"]
    if data.get("qr_code_id"):
        return f"{settings.BASE_URL}/pay/{data['qr_code_id']}"
    subject = data.get("subject_id")
    return f"{settings.BASE_URL}/admin/search/?{urlencode({'q': subject})}" if subject else ""
