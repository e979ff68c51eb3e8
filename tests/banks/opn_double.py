"""Opn Payments (Omise) with fees, a ledger and transfers, as its documents describe them, and with faults.

docs/decisions/98-fees-and-settlement.md has the facts and their sources.
"""

from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal

from core import clock
from tests.banks.fake_omise import FakeOmise, Json, listing, refund, response, time_text
from tests.webhook_receiver import ReceivedRequest, Script

FEE_RATE, VAT_RATE = Fraction(365, 10_000), Fraction(7, 100)
TRANSFER_FEE, TRANSFER_FEE_VAT = 2_804, 196  # 30.00 THB with VAT
HOLD = timedelta(days=7)
ChargeFault = Literal["", "fee_late", "vat_rounded_up", "not_settled"]


def fees_of(amount: int, *, vat_rounds_up: bool = False) -> tuple[int, int]:
    """The fee and its VAT, each rounded half up to a satang. The VAT is that of the rounded fee."""
    fee = _half_up(amount * FEE_RATE)
    return fee, ceil(fee * VAT_RATE) if vat_rounds_up else _half_up(fee * VAT_RATE)


def _half_up(amount: Fraction) -> int:
    return floor(amount + Fraction(1, 2))


class OpnDouble(FakeOmise):
    """A test adds charges, refunds and transfers, in the order of their time.

    scripts: replies to the next requests for a path, such as errors and late answers.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.refunds: list[Json] = []
        self.transactions: list[Json] = []
        self.transfers: list[Json] = []
        self.lists |= {
            "/refunds": self.refunds,
            "/transactions": self.transactions,
            "/transfers": self.transfers,
        }
        self.scripts: dict[str, list[Script]] = {}

    def add_charge(
        self, order_id: str, amount: int, at: datetime, *, fault: ChargeFault = "", hold: timedelta = HOLD
    ) -> Json:
        """A charge that succeeded. Faults: it shows no fee yet, too much VAT, or it is not in the ledger."""
        fee, fee_vat = fees_of(amount, vat_rounds_up=fault == "vat_rounded_up")
        net = amount - fee - fee_vat
        fees: Json = {"fee": fee, "fee_vat": fee_vat, "interest": 0, "interest_vat": 0, "net": net}
        shown = dict.fromkeys(fees) if fault == "fee_late" else fees
        made = self.add(order_id, at, amount=amount, paid_at=time_text(at), **shown)
        if fault != "not_settled":
            self._book(made["id"], net, "charge.captured.net", at, at + hold)
        return made

    def show_fee(self, charge: Json, *, fee_change: int = 0) -> None:
        """Show the fee that was late, or another one than before. The ledger does not change."""
        fee, fee_vat = fees_of(charge["amount"])
        charge.update(
            fee=fee + fee_change, fee_vat=fee_vat, net=charge["amount"] - fee - fee_change - fee_vat
        )

    def add_refund(self, order_id: str, charge: Json, amount: int, at: datetime) -> Json:
        """A refund. Opn keeps the fee of the charge."""
        fields = {"id": f"rfnd_{len(self.refunds)}", "charge": charge["id"], "amount": amount}
        made = refund(order_id, **fields, created_at=time_text(at))
        self.refunds.append(made)
        self._book(made["id"], -amount, "refund.created", at, at)
        return made

    def add_entry(self, origin: str | None, amount: int, key: str, at: datetime) -> Json:
        """An entry that is neither a charge nor a refund, such as a dispute."""
        return self._book(origin, amount, key, at, at)

    def add_transfer(self, at: datetime, *, short_by: int = 0, **changes: Any) -> Json:
        """A transfer of the whole balance, or of less, and then the rest is lost. It is paid at once."""
        end = time_text(at)
        balance = sum(_signed(each) for each in self.transactions if each["transferable_at"] <= end)
        transfer_id = f"trsf_{len(self.transfers)}"
        entry = self._book(transfer_id, -balance, "transfer.created", at, at)
        self.transfers.append(_transfer(transfer_id, balance - short_by, entry) | changes)
        return self.transfers[-1]

    def repeat_transfer(self, transfer: Json, at: datetime) -> Json:
        """Book the entries of a transfer again, and transfer them again."""
        end = transfer["created_at"]
        start = max((each["created_at"] for each in self.transfers if each["created_at"] < end), default="")
        paid = [each for each in self.transactions if start < each["transferable_at"] <= end]
        for each in paid:
            if not str(each["origin"]).startswith("trsf_"):
                self._book(each["origin"], _signed(each), each["key"], at, at)
        return self.add_transfer(at)

    def reply_to(self, request: ReceivedRequest) -> Script:
        path = request.path.partition("?")[0]
        if self.scripts.get(path):
            return self.scripts[path].pop(0)
        if not path.endswith("/refunds") or path in self.lists:
            return super().reply_to(request)
        charge = self._find(path.split("/")[2])
        if request.method == "GET":
            return response(listing(*(each for each in self.refunds if each["charge"] == charge["id"])))
        order_id, amount = request.json["metadata"]["order_id"], request.json["amount"]
        return response(self.add_refund(order_id, charge, amount, clock.now()))

    def _charge(self, body: Json) -> Json:
        made = super()._charge(body)
        self.show_fee(made)
        return made

    def _book(
        self, origin: str | None, amount: int, key: str, at: datetime, transferable_at: datetime
    ) -> Json:
        entry = {
            "object": "transaction",
            "id": f"trxn_{len(self.transactions)}",
            "livemode": False,
            "currency": "THB",
            "amount": abs(amount),
            "direction": "credit" if amount >= 0 else "debit",
            "key": key,
            "origin": origin,
            "transferable_at": time_text(transferable_at),
            "created_at": time_text(at),
        }
        self.transactions.append(entry)
        return entry


def _signed(entry: Json) -> int:
    return int(entry["amount"]) * (1 if entry["direction"] == "credit" else -1)


def _transfer(transfer_id: str, amount: int, entry: Json) -> Json:
    at = entry["created_at"]
    return {
        "object": "transfer",
        "id": transfer_id,
        "livemode": False,
        "deleted": False,
        "fail_fast": False,
        "paid": True,
        "sent": True,
        "sendable": False,
        "currency": "THB",
        "amount": amount,
        "fee": TRANSFER_FEE,
        "fee_vat": TRANSFER_FEE_VAT,
        "total_fee": TRANSFER_FEE + TRANSFER_FEE_VAT,
        "net": amount - TRANSFER_FEE - TRANSFER_FEE_VAT,
        "recipient": "recp_test_62e6vi6h2cnhukcqr13",
        "bank_account": {"object": "bank_account", "bank_code": "bbl", "last_digits": "6789"},
        "failure_code": None,
        "failure_message": None,
        "sent_at": at,
        "paid_at": at,
        "created_at": at,
        "transactions": [entry],
        "schedule": "schd_test_50y5y5oq2h8ljbmtynq",
    }
