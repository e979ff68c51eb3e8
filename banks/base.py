"""What an adapter to a bank can do. Plain data in and out: adapters know no model of ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from core.errors import AuthenticationError, NotFound
from core.slips import Slip

TransactionKind = Literal["credit", "decline", "reversal"]
TransferPurpose = Literal["refund", "withdrawal", "return"]
FinalStatus = Literal["succeeded", "failed", "returned"]
ResultStatus = FinalStatus | Literal["processing", "unknown", "not_sent"]


class UnknownBank(NotFound):
    code = "bank_not_found"
    message = "No bank {name}."


class InvalidSignature(AuthenticationError):
    """Nobody proved to be the bank: nothing of the message is kept."""

    code = "invalid_signature"
    message = "The signature is missing, wrong or too old."


class UnreadableMessage(Exception):
    """The bank said something that its adapter does not understand: it is parked for staff.

    answer: what this very message is answered, for a bank that wants some of it repeated; else it is
    `Bank.answer(None)`. body: byte for byte, what it said when we asked.
    """

    def __init__(
        self, reason: str = "", *, acknowledgement: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        super().__init__(reason)
        self.acknowledgement, self.body = acknowledgement, body


@dataclass(frozen=True, slots=True)
class ReportedTransaction:
    """A bank's word about one movement of money.

    amount: satang, at least 1. paid_at: the bank's time in UTC, to the millisecond.
    References and payer are empty where the bank does not tell them. slip_reference: what the mini-QR on the
    payer's slip calls the transfer (core.slips), where the bank tells it.
    """

    bank_transaction_id: str
    kind: TransactionKind
    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    payer_name: str
    payer_bank_code: str
    payer_account: str
    slip_reference: str = ""


@dataclass(frozen=True, slots=True)
class ReportedTransfer:
    """A bank's word about an order of ours, of its own accord.

    `returned`: the money came back after it had arrived. reference: the bank's own, or empty.
    """

    order_id: str
    status: FinalStatus
    reference: str = ""
    failure_code: str = ""


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """How one merchant is known at its bank, which is the adapter's name in `banks`.

    credentials: what the adapter needs by name, never logged. Which these are, each adapter says.
    """

    bank: str
    biller_id: str
    credentials: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class InquiryRequest:
    """Whether anything was paid for a code: by whom it is known, and the instants (UTC) to look between.

    amount: satang that were asked for; what was paid may differ.
    """

    biller_id: str
    reference1: str
    amount: int
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class InquiryResult:
    """A bank's answer to a question: byte for byte, and what it says. No notices: nothing was paid."""

    body: bytes
    transactions: tuple[ReportedTransaction, ...]


class InquiryFailed(Exception):
    """The bank was asked and did not answer, or not in a way that can be relied on: ask again later."""


class Bank(Protocol):
    """One bank, configured."""

    code: str
    """Its three digits among the banks of Thailand, as its statements carry them."""
    signs_callbacks: bool
    """Whether `verify` proves that the bank sent a message.

    If it does not, the bank is asked before money is credited.
    """
    calls_per_second: float
    """How many calls it takes from us, all merchants together."""

    @staticmethod
    def calls_needed(inquiry: InquiryRequest) -> int:
        """How many calls, tokens aside, `inquire` makes of a question."""

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Whether the bank itself sent this. `headers` ignores case. Raises BadSignature.

        Where a bank signs nothing this accepts: see `signs_callbacks`.
        """

    def parse_notification(self, body: bytes) -> ReportedTransaction | ReportedTransfer:
        """What a verified message says. Raises Unreadable."""

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        """The body of the 200 after which the bank stops sending; None for a message that was parked."""

    def inquire(self, inquiry: InquiryRequest) -> InquiryResult:
        """Ask what was paid. Takes at most some ten seconds. Raises NotAnswered, Unreadable."""


@dataclass(frozen=True, slots=True)
class SlipTransfer:
    """What a bank says of the transfer that a payer's slip names. It is no notice: no money is booked by it.

    amount: satang. at: UTC. payee: who got it, as the bank shows names and cut numbers. biller_id and the
    references are empty where the bank does not tell them.
    """

    amount: int
    transferred_at: datetime
    payee: str
    biller_id: str
    reference1: str
    reference2: str
    reference3: str


@runtime_checkable
class SlipLookup(Protocol):
    """A bank that can be asked about a slip as well."""

    def look_up_slip(self, slip: Slip) -> SlipTransfer | None:
        """What the bank knows of it; None: no such transfer. One call. Raises NotAnswered, Unreadable."""


@dataclass(frozen=True, slots=True)
class TransferOrder:
    """Money to be sent out. `order_id` is ours, and the bank's key to do it only once.

    amount: satang, at least 1. account: the whole number, never logged. charge_id: the acquirer's charge for
    a refund to a card, which has no account; otherwise empty.
    """

    order_id: str
    purpose: TransferPurpose
    amount: int
    bank_code: str
    account: str = field(repr=False)
    account_name: str
    charge_id: str


@dataclass(frozen=True, slots=True)
class TransferResult:
    """What the bank says of an order.

    `not_sent`: surely never reached it, so it may be sent again. `unknown`: nobody can tell, so it may only
    be inquired. `processing`: the bank has it. reference: the bank's own. failure_code: ours, with `failed`
    and `returned`.
    """

    status: ResultStatus
    reference: str = ""
    failure_code: str = ""


class TransferSender(Protocol):
    """One way by which money leaves. Trouble on the way is a Word, never an exception."""

    def send(self, order: TransferOrder) -> TransferResult:
        """Tell the bank to carry out the order."""

    def inquire(self, order: TransferOrder) -> TransferResult:
        """Ask what became of an order. Never makes the bank carry it out."""
