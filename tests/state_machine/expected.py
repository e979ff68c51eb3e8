"""The expected payments, credits and transfers of the model."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from banks import TransferPurpose
from payments.cards import MISSING_AFTER
from sandbox.models import AUTHORIZATION_LIFETIME

PAYABLE = ("pending", "expired")
# held: in suspense, as an exception. sending: in suspense, in a return. gone: returned to its payer.
MoneyPlace = Literal["held", "credited", "sending", "gone"]
ChargeOutcome = Literal["succeeded", "declined", "pending", "missing"]


@dataclass(eq=False)
class Charge:
    """The charge of a card payment at the acquirer. `missing`: the request never arrived there."""

    outcome: ChargeOutcome
    charged_at: datetime
    authorize_uri: str = ""

    def outcome_at(self, now: datetime) -> str:
        """Return the answer to an inquiry. An old pending or missing charge counts as declined."""
        age = now - self.charged_at
        if self.outcome == "pending" and age >= AUTHORIZATION_LIFETIME:
            return "declined"
        return "declined" if self.outcome == "missing" and age > MISSING_AFTER else self.outcome


@dataclass(eq=False)
class Payment:
    """A payment. Amounts are satang. Only a card payment has a `charge`."""

    code: dict[str, Any]
    amount: int
    status: str = "pending"
    received: int = 0
    refunded: int = 0
    refunding: int = 0
    taken_back: "BankMoney | None" = None
    charge: Charge | None = None
    notifications: list[bytes] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.code["payment_id"])

    @property
    def expires_at(self) -> datetime:
        return datetime.fromisoformat(self.code["expires_at"])

    @property
    def is_payable(self) -> bool:
        return self.charge is None and self.status in PAYABLE

    @property
    def amount_received(self) -> int | None:
        """Return `amount_received` of a paid payment as the API shows it."""
        return self.received if self.received not in (0, self.amount) else None

    @property
    def left(self) -> int:
        return self.received - self.refunded - self.refunding

    def refund(self, amount: int) -> None:
        self.refunded += amount
        if self.refunded == self.received:
            self.status = "refunded"


@dataclass(eq=False)
class BankMoney:
    """A credit that the bank reported.

    named_payment: the payment that its reference names. payment: the payment that it pays.
    reversal: the state of its reversal: waits, done, dismissed, written_off or empty.
    unrefunded: reversed satang that no refund shows yet.
    is_confirmed: false while only an uploaded statement reports it.
    """

    notification: dict[str, Any]
    amount: int
    named_payment: Payment | None = None
    payment: Payment | None = None
    place: MoneyPlace = "held"
    is_acceptable: bool = False
    is_confirmed: bool = True
    reversal: str = ""
    unrefunded: int = 0
    order: "Order | None" = None
    bank_transaction_id: str = ""
    reversal_id: str = ""


@dataclass(eq=False)
class Order:
    """A refund, return or withdrawal, with its state at the bank."""

    id: str
    purpose: TransferPurpose
    amount: int
    ending: str
    due_at: datetime
    payment: Payment | None = None
    money: BankMoney | None = None
    state: str = "queued"  # held submitted succeeded failed returned canceled
    has_begun: bool = False
    inquiries: int = 0
    sent_at: datetime | None = None
    ordered_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.ordered_at = self.due_at

    @property
    def status(self) -> str:
        if self.purpose == "refund":
            output = {
                "held": "pending",
                "queued": "pending",
                "submitted": "pending",
                "succeeded": "completed",
            }
            return output.get(self.state, self.state)
        if self.state in ("held", "queued", "submitted"):
            return "processing" if self.has_begun else "pending"
        return "failed" if self.state == "returned" else self.state

    @property
    def is_to_card(self) -> bool:
        return self.payment is not None and self.payment.charge is not None

    @property
    def is_cancelable(self) -> bool:
        return self.state in ("held", "queued") and (self.purpose != "withdrawal" or not self.has_begun)


@dataclass(eq=False)
class ApprovalItem:
    """An order, a manual return (`money`) or a write-off (`written_off`) that the limits were checked for.

    state: waiting; free: approved or within the limits; ended: rejected or canceled.
    """

    subject_id: str
    amount: int
    order: Order | None = None
    money: BankMoney | None = None
    written_off: BankMoney | None = None
    state: Literal["waiting", "free", "ended"] = "free"
