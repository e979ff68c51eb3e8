"""Pages of the staff console with long lists behind them, as a logged-in user reads them over HTTP."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from urllib.parse import urlencode

import requests

from bench import bulk
from bench.lists import BANK_TRANSACTIONS, EXCEPTIONS, PAYMENTS
from bench.questions import Measured, Questioner
from console.home.period import MAX_DAYS
from core.clock import BANGKOK
from tests.stack import Stack

DAY = bulk.NEWEST.astimezone(BANGKOK).date()
MOST_DAYS = {"from": str(DAY - timedelta(days=MAX_DAYS - 1)), "to": str(DAY), "mode": "test"}
# The written merchants are test merchants, and all amounts are 1,500 THB.
OF_MERCHANT = {"merchant": "{merchant}"}
NO_AMOUNT = {"amount_from": "1", "amount_to": "2"}
FILTERS = {
    "by merchant": OF_MERCHANT,
    "by merchant and amount": OF_MERCHANT | {"amount_from": "1,500", "amount_to": "1,500"},
    "by merchant and amount, in vain": OF_MERCHANT | NO_AMOUNT,
    "by amount": {"amount_from": "1,500", "amount_to": "1,500"},
    "by amount, in vain": NO_AMOUNT,
    "of tests": {"mode": "test"},
    "live, in vain": {"mode": "live"},
}
FILTERS_BY_DAY = FILTERS | {
    "by day": {"date": str(DAY)},
    "by day and amount, in vain": {"date": str(DAY), **NO_AMOUNT},
    "by merchant and day": OF_MERCHANT | {"date": str(DAY)},
    "by merchant, month and amount, in vain": OF_MERCHANT | {"date": f"{DAY:%Y-%m}", **NO_AMOUNT},
}
# For each page or list: its address, and its questions by name. `{tail}` is the end of the id of one row, and
# `{merchant}` the merchant of the list.
LISTS: dict[str, tuple[str, dict[str, dict[str, str]]]] = {
    "home": (
        "",
        {
            "today": {"mode": "test"},
            "a full day": {"from": str(DAY), "to": str(DAY), "mode": "test"},
            f"{MAX_DAYS} days": MOST_DAYS,
        },
    ),
    # A search that finds one row leads to its page, so these find several or none.
    "search": (
        "search/",
        {
            "by reference": {"q": "order {tail}"},
            "by amount": {"q": "1,550.00"},
            "by the payer's name": {"q": "Somchai"},
            "by the payer's name, in vain": {"q": "Xenophon"},
            "in vain": {"q": "order 17"},
        },
    ),
    "payments": (
        "payments/payment/",
        {
            "": {},
            "most by status": {"status": "succeeded"},
            "few by status": {"status": "pending"},
            "by payer": {"payer_differs__exact": "1"},
            "by merchant, few by status": OF_MERCHANT | {"status": "pending"},
            **FILTERS_BY_DAY,
            "last page": {"p": "200"},
            "search by id": {"q": "pay_{tail}"},
            "search by reference": {"q": "order {tail}"},
            "search in vain": {"q": "order 17"},
        },
    ),
    "codes": ("qrcodes/qrcode/", {"": {}, "search by id": {"q": "qr_{tail}"}}),
    "transactions": (
        "transactions/transaction/",
        {
            "": {},
            "few by status": {"status__exact": "pending"},
            "by type": {"type__exact": "refund"},
            "search by payment": {"q": "pay_{tail}"},
        },
    ),
    "bank transactions": (
        "reconciliation/banktransaction/",
        {
            "": {},
            "by result": {"match_result__exact": "late"},
            **FILTERS,
            "search by the payer's name": {"q": "Somchai"},
            "search by the bank's id": {"q": "SANDBOX{tail}"},
            "search by reference": {"q": "R{tail}"},
            "search in vain": {"q": "order 17"},
        },
    ),
    "events": (
        "webhooks/event/",
        {"": {}, "few by type": {"type": "refund.completed"}, "search by payment": {"q": "pay_{tail}"}},
    ),
    "deliveries": (
        "webhooks/delivery/",
        {
            "": {},
            "few by state": {"state__exact": "pending"},
            "by merchant": OF_MERCHANT,
            "of tests": {"mode": "test"},
            "live, in vain": {"mode": "live"},
            "by day": {"date": str(DAY)},
            "search by event": {"q": "evt_{tail}"},
            "search by payment": {"q": "pay_{tail}"},
        },
    ),
    "refunds": (
        "refunds/refund/",
        {
            "": {},
            "few by status": {"status__exact": "pending"},
            **FILTERS_BY_DAY,
            "search by payment": {"q": "pay_{tail}"},
        },
    ),
    "withdrawals": (
        "withdrawals/withdrawal/",
        {
            "": {},
            "few by status": {"status__exact": "processing"},
            **FILTERS_BY_DAY,
            "search by reference": {"q": "order {tail}"},
        },
    ),
    "exceptions": (
        "reconciliation/reconciliationexception/",
        {
            "": {},
            "few by reason": {"reason__exact": "late"},
            "by merchant": OF_MERCHANT,
            "by merchant and amount, in vain": OF_MERCHANT | NO_AMOUNT,
            "by amount, in vain": NO_AMOUNT,
            "live, in vain": {"money": "live"},
            "by amount, most first": {"o": "-2"},
            "last page": {"p": "20"},
            "search by reference": {"q": "R{tail}"},
            "search by amount": {"q": "1,550.00"},
            "search in vain": {"q": "order 17"},
        },
    ),
}
STAFF_LISTS = (
    ("bank transactions", "reconciliation_banktransaction", BANK_TRANSACTIONS),
    ("exceptions", "reconciliation_reconciliationexception", EXCEPTIONS),
)


class ConsolePages:
    """The pages, read by the user of the instance."""

    def __init__(self, stack: Stack, questioner: Questioner) -> None:
        self.stack, self.questioner = stack, questioner

    def measure(self, tail: str, merchants: Mapping[str, str], rounds: int, seconds: float) -> Measured:
        """The latencies of all pages. merchants: of each list. Raises NotMeasurable."""
        result: Measured = {}
        # To write long lists takes longer than a login lasts.
        cookies = self._log_in()
        for _ in range(rounds):
            for name, path in self._paths(tail, merchants):
                request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookies}\r\n\r\n"
                self.questioner.ask(result, name, request.encode(), seconds)
        return result

    def _log_in(self) -> str:
        """The cookies of a new login."""
        with requests.Session() as session:
            address = f"{self.stack.base_url}/admin/login/"
            session.get(address)
            form = {
                "login": self.stack.demo["admin_user"],
                "password": self.stack.demo["admin_password"],
                "csrfmiddlewaretoken": session.cookies["csrftoken"],
                "next": "/admin/",
            }
            session.post(address, form, headers={"Referer": address}).raise_for_status()
            return "; ".join(f"{name}={value}" for name, value in session.cookies.items())

    def _paths(self, tail: str, merchants: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for title, (path, queries) in LISTS.items():
            merchant = merchants.get(title, merchants[PAYMENTS.name])
            for name, query in queries.items():
                given = {key: value.format(tail=tail, merchant=merchant) for key, value in query.items()}
                yield f"{title}, {name}".removesuffix(", "), f"/admin/{path}?{urlencode(given)}"


def write_staff_lists(stack: Stack, merchant_id: str, run: str, rows: int) -> None:
    """Write bank transactions, and a tenth as many exceptions."""
    with bulk.connect(stack.owner_url) as connection, bulk.workers_paused(stack, connection):
        for what, table, statement in STAFF_LISTS:
            with bulk.unindexed(connection, table, rows):
                bulk.fill(connection, statement, rows, run, what=what, merchant=merchant_id)
            connection.execute(f"VACUUM (ANALYZE) {table}")
