"""Evidence to print, in Thai: what the signed text of each payment says, and what proves it."""

import base64
import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson
from django.utils import translation
from django.utils.translation import gettext as _

from core import clock, money
from core.drawing.pdf import Document
from operations.audit.daily_close import signing
from operations.evidence.shapes import EvidenceObject, EvidenceSeal, Opening, PaymentEvidence
from payments.models import PaymentStatus

# Of a message. The JSON has all of it.
MAX_PRINTED = 3_000
Record = dict[str, Any]
Openings = dict[str, Opening]
Facts = Iterator[tuple[str, str | None]]
"""The page leaves out what is empty."""


def write(pack: EvidenceObject) -> bytes:
    """The pack has at least one payment."""
    with translation.override("th"):
        newest = max(orjson.loads(each["body"])["closed_at"] for each in pack["seals"])
        document = Document(_("Evidence of payments"), at=datetime.fromisoformat(newest), language="th")
        for place, payment in enumerate(pack["payments"]):
            if place:
                document.add_page()
            _add(document, payment, pack["seals"][payment["seal"]])
        return bytes(document.output())


def _add(document: Document, payment: PaymentEvidence, seal: EvidenceSeal) -> None:
    record, opened = orjson.loads(payment["text"]), payment["opened"]
    document.heading(f"{_('Payment')} {record['payment']['payment_id']}")
    document.facts((name, value) for name, value in _order(record["payment"], opened) if value)
    for title, rows, facts in (
        (_("Bank transactions"), record["bank_transactions"], _bank_transaction),
        (_("Messages of banks"), record["messages"], _message),
        (_("Statement lines"), record["statement_lines"], _message),
        (_("Answers to inquiries"), record["inquiries"], _other),
        (_("Slips"), record["slips"], _other),
        (_("Refunds"), record["refunds"], _other),
        (_("Ledger entries"), record["ledger"], _other),
        (_("Audit trail"), record["audit_trail"], _other),
    ):
        if rows:
            document.heading(title, room=20)
        for row in rows:
            document.facts((name, value) for name, value in facts(row, opened) if value)
            document.ln(2)
    document.heading(_("Proof"), room=60)
    document.facts(_proof(payment, seal))
    text = _(
        "This page shows the text that the operator signed. The JSON file proves it without the service: "
        "thaiqr verify FILE --key KEY. Get the key, or its fingerprint, from the operator in another way."
    )
    document.add_line(text, small=True)


def _order(payment: Record, opened: Openings) -> Facts:
    merchant, code, received = payment["merchant"], payment["code"] or {}, payment["amount_received"]
    yield _("Merchant"), f"{merchant['name']} {merchant['tax_id']} {merchant['merchant_id']}"
    yield _("Amount"), money.with_code(payment["amount"])
    yield _("Amount received"), money.with_code(payment["amount"] if received is None else received)
    yield _("Refunded"), money.with_code(payment["amount_refunded"])
    yield _("Status"), _(str(PaymentStatus(payment["status"]).label))
    yield _("Created"), _time(payment["created_at"])
    yield _("Paid at"), _time(payment["completed_at"])
    yield _("Reference"), payment["reference"]
    yield _("Bank reference"), payment["bank_reference"]
    yield _("QR code"), code.get("qr_data")
    yield _("Reference in the code"), code.get("reference1")
    yield _("Customer"), _shown(payment["client_name"], opened)
    yield _("Account of the customer"), _shown(payment["client_bank_account"], opened)
    yield _("Description"), _shown(payment["description"], opened)


def _bank_transaction(row: Record, opened: Openings) -> Facts:
    yield _("Bank reference"), f"{row['bank']} {row['bank_reference']}"
    yield _("Amount"), f"{money.with_code(row['amount'])} ({row['kind']})"
    yield _("Paid at"), _time(row["paid_at"])
    yield _("Reported at"), _time(row["received_at"])
    yield _("Payer"), _shown(row["payer_name"], opened)
    yield _("Account of the payer"), _shown(row["payer_account"], opened)
    yield _("Bank of the payer"), row["payer_bank_code"]


def _message(row: Record, opened: Openings) -> Facts:
    """A message, or a line of a statement."""
    source = row.get("source") or f"{row['file_sha256']} ({row['line_number']})"
    yield row["bank"], f"{_time(row.get('received_at') or row['created_at'])} {source}"
    body = row["body_base64"] or {}
    if body.get("sha256") not in opened:
        yield _("Message"), _("(hidden: you may not see personal data)")
        return
    message = base64.b64decode(opened[body["sha256"]]["text"])
    yield "SHA-256", hashlib.sha256(message).hexdigest()
    yield _("Message"), message.decode("utf-8", "backslashreplace")[:MAX_PRINTED]


def _other(row: Record, opened: Openings) -> Facts:
    """One line: the fields as the signed text has them, amounts in baht."""
    shown = {name: money.with_code(value) if name == "amount" else value for name, value in row.items()}
    yield "", ", ".join(f"{name}: {value}" for name, value in shown.items() if value not in (None, ""))


def _proof(payment: PaymentEvidence, seal: EvidenceSeal) -> list[tuple[str, str]]:
    body = orjson.loads(seal["body"])
    trail = body["audit_trail"]
    return [
        (_("Daily close"), f"{body['day']} ({body['close']['number']})"),
        (_("Closed at (UTC)"), body["closed_at"]),
        (_("Hash of the close"), body["close"]["hash"]),
        (_("Close before"), body["close"]["previous_hash"] or "-"),
        (_("Newest link of the audit trail"), f"{trail['number']} {trail['hash']}" if trail else "-"),
        (_("Root of the payments"), f"{body['root']} ({payment['number'] + 1} / {body['payments']})"),
        (_("Signature (Ed25519)"), seal["signature"]),
        (_("Fingerprint of the key"), signing.fingerprint(seal["public_key"])),
    ]


def _shown(hidden: dict[str, str] | None, opened: Openings) -> str | None:
    """The text as far as it is opened, else its mask."""
    found = [opened[each]["text"] for each in (hidden or {}).values() if each in opened]
    # The order of the forms in the signed text: the mask comes first.
    return found[-1] if found else None


def _time(text: str | None) -> str | None:
    """In Bangkok."""
    return f"{clock.display(datetime.fromisoformat(text))} +07:00" if text else None
