"""Builders of statement files in the published layout, and helpers to import them."""

import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from core import clock
from core.clock import BANGKOK
from core.database import rows
from core.thai import thaiqr
from reconciliation.models import BankTransaction, Statement
from reconciliation.statements import importing, statement_file
from reconciliation.statements.lines import FileLine
from tests.conftest import Shop, open_shop
from tests.context import acting_as
from tests.reconciliation.builders import Seller, decide

BILLER = "099400016550100"
HEADER = "date,time,biller_id,reference1,reference2,reference3,amount,type,payer_name,payer_bank_code"

# SQL that copies a payment, its QR code and its events `count` times, numbered from 1.
COPY_PAYMENTS = [
    """
INSERT INTO payments_payment SELECT (jsonb_populate_record(old, jsonb_build_object(
    'id', 'pay_' || substr(old.id, 5, 8) || lpad(n::text, 19, '0'),
    'qr_code_id', 'qr_' || substr(old.id, 5, 8) || lpad(n::text, 19, '0')
))).* FROM payments_payment AS old, generate_series(1, %(count)s) AS n WHERE old.id = %(payment)s
""",
    """
INSERT INTO qrcodes_qrcode SELECT (jsonb_populate_record(old, jsonb_build_object(
    'payment_id', 'pay_' || substr(old.payment_id, 5, 8) || lpad(n::text, 19, '0'),
    'reference1', 'LOST' || lpad(n::text, 16, '0'),
    'qr_data', replace(
        old.qr_data,
        concat('02', length(old.reference1), old.reference1),
        concat('0220', 'LOST', lpad(n::text, 16, '0'))
    )
))).* FROM qrcodes_qrcode AS old, generate_series(1, %(count)s) AS n WHERE old.payment_id = %(payment)s
""",
    """
INSERT INTO webhooks_event SELECT (jsonb_populate_record(old, jsonb_build_object(
    'id', 'evt_' || substr(old.id, 5, 8) || lpad(n::text, 19, '0'),
    'subject_id', 'pay_' || substr(old.subject_id, 5, 8) || lpad(n::text, 19, '0')
))).* FROM webhooks_event AS old, generate_series(1, %(count)s) AS n WHERE old.subject_id = %(payment)s
""",
]


def open_shop_with_biller(name: str) -> Shop:
    """Open a shop with the biller id of the statement lines."""
    shop = open_shop(name)
    shop.merchant.biller_id = BILLER
    shop.merchant.save()
    return shop


def detail(**changes: Any) -> bytes:
    """Build the line of a credit of 1,500.00 THB at noon, with each field at its offset."""
    given = {
        "type": "D", "seq": "000002", "bank": "998", "account": "0016550100", "date": "21112026",
        "time": "120000", "name": "สมชาย ใจดี", "ref1": "NOBODYKNOWSTHIS00000", "ref2": "", "ref3": "",
        "branch": "0000", "teller": "0000", "sign": "C", "code": "TRF", "cheque": "0000000",
        "amount": 150_000, "biller": BILLER, "payer_bank": "014",
    } | changes  # fmt: skip
    line = bytearray(b" " * 256)
    for start, end, value in (
        (0, 1, given["type"]), (1, 7, given["seq"]), (7, 10, given["bank"]), (10, 20, given["account"]),
        (20, 28, given["date"]), (28, 34, given["time"]), (34, 84, given["name"]), (84, 104, given["ref1"]),
        (104, 124, given["ref2"]), (124, 144, given["ref3"]), (144, 148, given["branch"]),
        (148, 152, given["teller"]), (152, 153, given["sign"]), (153, 156, given["code"]),
        (156, 163, given["cheque"]), (163, 176, f"{given['amount']:0>13}"), (196, 211, given["biller"]),
        (243, 246, given["payer_bank"]),
    ):  # fmt: skip
        line[start:end] = str(value).encode("cp874").ljust(end - start)
    assert len(line) == 256
    return bytes(line)


def header() -> bytes:
    start = "H0000019980016550100" + f"{'SOMTAM HOUSE':<40}" + "21112026" + "BILLPAY "
    return start.ljust(256).encode("cp874")


def trailer(*, debit: int = 0, debits: int = 0, credit: int = 0, credits: int = 0) -> bytes:
    totals = f"{debit:013d}{debits:06d}{credit:013d}{credits:06d}"
    return f"T9999999980016550100{totals}".ljust(256).encode("cp874")


def bot_file(*details: bytes, end: bytes | None = None) -> bytes:
    """Build a file. Its trailer has the correct totals unless `end` is given."""
    amounts = [(line[152:153], int(line[163:176])) for line in details if line[163:176].isdigit()]
    debits = [amount for sign, amount in amounts if sign == b"D"]
    credits = [amount for sign, amount in amounts if sign == b"C"]
    right = trailer(debit=sum(debits), debits=len(debits), credit=sum(credits), credits=len(credits))
    return b"\r\n".join([header(), *details, right if end is None else end, b""])


def csv_file(*lines: str, header: str = HEADER) -> bytes:
    return "\r\n".join([header, *lines, ""]).encode()


def credit_line(qr_code: dict[str, Any], paid_at: datetime, **changes: Any) -> bytes:
    """Build the line of a credit that pays a code."""
    code, at = thaiqr.parse(qr_code["qr_data"]), paid_at.astimezone(BANGKOK)
    fields = {
        "date": f"{at:%d%m%Y}", "time": f"{at:%H%M%S}", "ref1": code.reference1,
        "ref2": code.reference2, "ref3": code.reference3, "biller": code.biller_id,
        "account": str(code.biller_id)[-10:], "amount": qr_code["amount"],
    }  # fmt: skip
    return detail(**fields | changes)


def lines_of_lost_callbacks(shop: Shop, count: int) -> Iterator[bytes]:
    """Create pending payments and yield their lines, all paid in the next 15 minutes."""
    payment_id, at = shop.qr_code(expiry_minutes=60)["payment_id"], clock.now().astimezone(BANGKOK)
    for sql in COPY_PAYMENTS:
        rows.run(sql, {"payment": payment_id, "count": count})
    for number in range(1, count + 1):
        paid = at + timedelta(seconds=900 * number // count)
        yield detail(date=f"{paid:%d%m%Y}", time=f"{paid:%H%M%S}", ref1=f"LOST{number:016d}")


@dataclass
class Imported:
    """The number of lines by result, and the statement with the problems of the file as a whole."""

    statement: Statement
    counts: Counter[str]

    @property
    def is_clean(self) -> bool:
        return not (self.counts["unreadable"] or self.statement.problems)


def import_file(
    body: bytes, *, bank: str = "sandbox", on_batch: Callable[[Any], None] = lambda lines: None
) -> Imported:
    """Import a file of these bytes."""
    file = statement_file.open_file(io.BytesIO(body), "day.txt")
    with acting_as("staff:malee"):
        statement = importing.begin(file, bank=bank, now=clock.now())
    return Imported(statement, importing.run(file, statement, clock=clock.now, on_batch=on_batch))


def report_twice(seller: Seller) -> BankTransaction:
    """Return a callback that is probably the same money as a statement line of the day before."""
    now = clock.now().replace(microsecond=0)
    code = replace(seller.shop, codes_made_at=now - timedelta(days=2)).qr_code()
    import_file(bot_file(credit_line(code, now - timedelta(days=1))))
    return seller.report(code, paid_at=now)


def confirm_all_transactions() -> None:
    """Confirm all money that only files report, as a second person."""
    for bank_transaction in BankTransaction.objects.unconfirmed():
        decide("confirm", bank_transaction.id, actor="staff:somsri", note="Seen in online banking.")


def import_results(body: bytes) -> list[FileLine]:
    """Import a file and return its lines with their results."""
    results: list[FileLine] = []
    import_file(body, on_batch=results.extend)
    return results


def minutes_ago(minutes: float) -> datetime:
    return clock.now() - timedelta(minutes=minutes)
