"""A month of payments as other gateways write it, with the columns that they do not share with us too."""

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core import money
from core.clock import BANGKOK
from payments.models import Payment

PAYER = 'สมชาย ใจดี, "Somchai"'


@dataclass(frozen=True)
class Sale:
    """A payment at another gateway. Amounts are satang."""

    reference: str
    amount: int
    at: datetime
    fee: int = 0
    fee_vat: int = 0
    is_paid: bool = True

    @property
    def net(self) -> int:
        return self.amount - self.fee - self.fee_vat


def sale_of(payment: Payment) -> Sale:
    assert payment.completed_at and payment.reference
    return Sale(
        payment.reference, payment.received, payment.completed_at, payment.fee or 0, payment.fee_vat or 0
    )


def table(rows: Iterable[dict[str, Any]], delimiter: str = ",", *, header: bool = True) -> str:
    file, rows = io.StringIO(), list(rows)
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def json_lines(events: Iterable[Any]) -> str:
    return "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in events)


def utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def charge(sale: Sale) -> dict[str, Any]:
    """As in the fixtures of Opn's client libraries."""
    return {
        "object": "charge",
        "id": f"chrg_{sale.reference}",
        "amount": sale.amount,
        "net": sale.net,
        "fee": sale.fee,
        "fee_vat": sale.fee_vat,
        "currency": "THB",
        "description": PAYER,
        "metadata": {"order_id": sale.reference},
        "card": {"object": "card", "name": PAYER, "last_digits": "4242"},
        "status": "successful" if sale.is_paid else "failed",
        "created_at": f"{sale.at:%Y-%m-%dT%H:%M:%SZ}",
        "paid_at": f"{sale.at:%Y-%m-%dT%H:%M:%SZ}" if sale.is_paid else None,
    }


def opn_csv(sales: list[Sale]) -> str:
    return table(
        {
            "id": f"chrg_{sale.reference}",
            "card name": PAYER,
            "amount": money.baht(sale.amount),
            "currency": "thb",
            "status": "successful" if sale.is_paid else "failed",
            "metadata[order_id]": sale.reference,
            "fee": money.baht(sale.fee),
            "fee_vat": money.baht(sale.fee_vat),
            "net": money.baht(sale.net),
            "paid_at": f"{sale.at:%Y-%m-%dT%H:%M:%SZ}",
        }
        for sale in sales
    )


def opn_webhooks(sales: list[Sale]) -> str:
    """Each charge is made and then completed, and the second event comes twice. A transfer is no charge."""
    events: list[Any] = [
        {"object": "event", "key": "transfer.send", "data": {"object": "transfer", "amount": 5}}
    ]
    for sale in sales:
        made = charge(sale) | {"status": "pending", "paid_at": None, "fee": 0}
        events.append({"object": "event", "key": "charge.create", "data": made})
        events += [{"object": "event", "key": "charge.complete", "data": charge(sale)}] * 2
    return json_lines(events)


def stripe_csv(sales: list[Sale]) -> str:
    """Balance change from activity, itemized. Fees have their tax in them."""
    rows = [
        {
            "balance_transaction_id": f"txn_{sale.reference}",
            "created_utc": utc(sale.at),
            "available_on_utc": utc(sale.at),
            "currency": "thb",
            "gross": money.baht(sale.amount),
            "fee": money.baht(sale.fee + sale.fee_vat),
            "net": money.baht(sale.net),
            "reporting_category": "charge",
            "source_id": f"ch_{sale.reference}",
            "description": PAYER,
            "customer_name": PAYER,
            "payment_metadata[order_id]": sale.reference,
        }
        for sale in sales
        if sale.is_paid
    ]
    refund = rows[0] | {"reporting_category": "refund", "gross": "-20.00", "source_id": "re_1"}
    return table([*rows, refund])


def stripe_webhooks(sales: list[Sale]) -> str:
    """With the balance transaction expanded, as a program that stores webhooks may do."""

    def event(sale: Sale, kind: str) -> dict[str, Any]:
        body = {
            "id": f"{kind}_{sale.reference}",
            "object": kind,
            "amount": sale.amount,
            "currency": "thb",
            "created": int(sale.at.timestamp()),
            "status": "succeeded" if sale.is_paid else "failed",
            "metadata": {"order_id": sale.reference},
            "billing_details": {"name": PAYER},
            "balance_transaction": {"fee": sale.fee + sale.fee_vat, "net": sale.net},
        }
        return {"object": "event", "type": f"{kind}.succeeded", "data": {"object": body}}

    return json_lines(event(sale, kind) for sale in sales for kind in ("payment_intent", "charge"))


def c2p_csv(sales: list[Sale]) -> str:
    """The reconcile report of 2C2P: no names, a first line of totals, and tax that the merchant withholds."""

    def row(number: int, sale: Sale) -> list[str]:
        at, wht = sale.at.astimezone(BANGKOK), sale.fee * 3 // 100
        start = ["2C2P2026110101", str(number), "D", "test", "0", "01/11/2026", "test"]
        when = [f"{at:%d/%m/%Y}", f"{at:%H%M%S}", f"{at:%d/%m/%Y}", "000000", "702702000000000"]
        amounts = [f"{satang / 100:.5f}" for satang in (sale.amount, 0, 0, sale.fee, sale.fee_vat)]
        batch = ["2C2P-261101-0001", "02/11/2026", "41.00000", "2.87000", "43.87000", ""]
        end = [
            f"{wht / 100:.5f}",
            f"{(sale.net + wht) / 100:.5f}",
            "0.00000",
            "THB",
            "545296",
            "05",
            "411111XXXXXX1111",
        ]
        return [*start, *when, sale.reference, "", "001", "VI", PAYER, *amounts, *batch, *end]

    file = io.StringIO()
    head = ["2C2P2026110101", "9", "H", *["test"] * 14, "0.00", *["0.00"] * 13, "THB"]
    csv.writer(file).writerows([head, *(row(n, sale) for n, sale in enumerate(sales, 1) if sale.is_paid)])
    return file.getvalue()


def c2p_webhooks(sales: list[Sale]) -> str:
    """Signed tokens, as 2C2P sends them. They have no fees."""

    def token(sale: Sale) -> str:
        body = {
            "merchantID": "JT04",
            "invoiceNo": sale.reference,
            "cardNo": "411111XXXXXX1111",
            "amount": money.baht(sale.amount),
            "currencyCode": "THB",
            "tranRef": "2868821",
            "transactionDateTime": f"{sale.at.astimezone(BANGKOK):%Y%m%d%H%M%S}",
            "respCode": "0000" if sale.is_paid else "4005",
        }
        parts = ({"alg": "HS256"}, body, {"of": "a signature"})
        coded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        return ".".join(coded)

    return json_lines({"payload": token(sale)} for sale in sales)


WRITERS: dict[str, tuple[str, Callable[[list[Sale]], str]]] = {
    "opn_csv": ("opn", opn_csv),
    "opn_webhooks": ("opn", opn_webhooks),
    "stripe_csv": ("stripe", stripe_csv),
    "stripe_webhooks": ("stripe", stripe_webhooks),
    "2c2p_csv": ("2c2p", c2p_csv),
    "2c2p_webhooks": ("2c2p", c2p_webhooks),
}
