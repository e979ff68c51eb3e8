"""A close to print: the totals of its signed text, and what proves that text."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
from django.utils.translation import get_language, gettext as _

from core import clock, money
from core.drawing.pdf import MAX_ROWS, Column, Document
from operations.audit.daily_close import signing
from operations.audit.daily_close.totals import AMOUNTS, bounds
from operations.models import DailyClose, SignedClose

TIME_FORM = "%Y-%m-%d %H:%M:%S"
QR_SIDE = 45.0
# Each table has a row with the sum.
SUMS = 3
Sums = list[dict[str, Any]]


def write(close: DailyClose) -> bytes:
    """The close as PDF, in the language of the reader. It shows what the signed text says, and no more."""
    body = orjson.loads(close.body)
    title = _("Daily close %(day)s") % {"day": close.day}
    document = Document(title, at=bounds(close.day)[1], language=get_language() or "en")
    document.facts(_facts(close, body))
    left = MAX_ROWS - SUMS
    # Heading, name of the key of a row, and rows.
    tables: list[tuple[str, str, Sums]] = [
        (_("Merchants"), "merchant", body["merchants"]),
        (_("Banks and acquirers"), "account", body["banks"]),
        (_("Ledger accounts"), "account", body["accounts"]),
    ]
    for heading, name, found in tables:
        document.heading(heading, room=30)
        if len(found) <= left:
            left -= len(found)
            rows = [[each[name], *_amounts([each])] for each in found]
            document.add_rows(_columns(name), [*rows, _sum(found)], has_sum=True)
        else:
            document.add_rows(_columns(name), [_sum(found)], has_sum=True)
            count = {"count": f"{len(found):,}"}
            document.add_line(_("%(count)s rows are too many to print. The signed file has them.") % count)
    also = [(_("Hash of the ledger entries"), body["ledger"]["hash"])]
    add_proof(document, close, f"daily-close {close.day}", also)
    return bytes(document.output())


def _facts(close: DailyClose, body: dict[str, Any]) -> list[tuple[str, str]]:
    first, after = bounds(close.day)
    start, end = (at.astimezone(clock.BANGKOK) for at in (first, after - timedelta(seconds=1)))
    return [
        (_("Number"), str(close.number)),
        (_("Period (Bangkok)"), f"{start:{TIME_FORM}} – {end:{TIME_FORM}}"),
        (_("Currency"), body["currency"]),
        (_("Ledger entries"), f"{body['ledger']['entries']:,}"),
    ]


def _columns(name: str) -> list[Column]:
    first = _("Merchant") if name == "merchant" else _("Account")
    labels = (_("Opening"), _("In"), _("Out"), _("Closing"))
    # An account has a type and an id, which must not be cut: `unconfirmed:mch_...` has 43 characters.
    return [Column(first, 0.46), *(Column(label, 0.135, is_number=True) for label in labels)]


def _sum(found: Sums) -> list[str]:
    return [_("Sum"), *_amounts(found)]


def _amounts(found: Sums) -> list[str]:
    return [f"{money.decimal(sum(each[amount] for each in found)):,}" for amount in AMOUNTS]


def add_proof(
    document: Document, close: SignedClose, name: str, also: Sequence[tuple[str, str]] = ()
) -> None:
    """What verifies the signed text. name: of the close, in the QR code."""
    body = orjson.loads(close.body)
    document.heading(_("Proof"), room=QR_SIDE + 40)
    trail, previous = body["audit_trail"], body["previous"]
    fingerprint = signing.fingerprint(close.public_key)
    document.facts(
        [
            (_("SHA-256 of the signed text"), close.hash),
            (_("Signature (Ed25519)"), close.signature),
            (_("Fingerprint of the key"), fingerprint),
            *also,
            (_("Newest link of the audit trail"), f"{trail['number']} {trail['hash']}" if trail else "-"),
            (_("Close before"), f"{previous['number']} {previous['hash']}" if previous else "-"),
            (_("Closed at (UTC)"), body["closed_at"]),
        ]
    )
    document.add_line(
        _(
            "The signature is of the text in the JSON file, from which this page was made. Verify that file "
            "with manage.py daily_close --check, and compare the hash and the fingerprint. The QR code has "
            "both and the signature."
        ),
        small=True,
    )
    proof = f"{name} {close.number} {close.hash} {close.signature} {fingerprint}"
    document.qr_code(proof, side=QR_SIDE)
