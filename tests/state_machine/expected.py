"""The expected payments, credits and transfers of the model."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from banks import TransferPurpose
from payments.cards import MISSING_AFTER
from sandbox.models import AUTHORIZATION_LIFETIME

PAYABLE = ("pending", "expired")
# held: in suspense, where staff see it. sending: in suspense, on its way back. gone: with its payer again.
MoneyPlace = Literal["held", "credited", "sending", "gone"]
ChargeOutcome = Literal["succeeded", "declined", "pending", "missing"]


@dataclass(eq=False)
class Charge:
    """What the acquirer made of a card payment. missing: the request never arrived there."""

    outcome: ChargeOutcome
    charged_at: datetime
    authorize_uri: str = ""

    def outcome_at(self, now: datetime) -> str:
        """What an inquiry tells: some charges end by the clock."""
        age = now - self.charged_at
        if self.outcome == "pending" and age >= AUTHORIZATION_LIFETIME:
            return "declined"
        return "declined" if self.outcome == "missing" and age > MISSING_AFTER else self.outcome


@dataclass(eq=False)
class Payment:
    """Amounts are satang, here and below. received: what it succeeded with. charge: of a card payment."""

    code: dict[str, Any]
    amount: int
    status: str = "pending"
    received: int = 0
    refunded: int = 0
    refunding: int = 0
    taken_back: "BankMoney | None" = None
    charge: Charge | None = None
    notices: list[bytes] = field(default_factory=list)

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
        """As the API shows it."""
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

    own: the payment that its reference names. payment: that succeeded by it. reversal: whether the bank has
    taken it back: waits done dismissed lost, or nothing. unshown: satang taken back that no refund shows.
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
    movement_id: str = ""
    reversal_id: str = ""


@dataclass(eq=False)
class Order:
    """Money out, and how far its bank is: of a payment, of money that waited, or else of the balance."""

    id: str
    purpose: TransferPurpose
    amount: int
    ending: str
    due_at: datetime
    payment: Payment | None = None
    money: BankMoney | None = None
    state: str = "queued"  # held told succeeded failed returned canceled
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
    """Money out that the limits were asked about: an order, a return by hand (money), or a write-off (lost).

    state: waiting, or it may leave, or it was rejected or canceled and never left.
    """

    subject_id: str
    amount: int
    order: Order | None = None
    money: BankMoney | None = None
    written_off: BankMoney | None = None
    state: Literal["waiting", "free", "ended"] = "free"
