"""What an adapter to an acquirer of card payments can do. Card numbers never come here, only tokens."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from banks.base import TransferSender

ChargeOutcome = Literal["succeeded", "declined", "refused", "pending", "unknown", "not_sent", "missing"]
DeclineCode = Literal["insufficient_funds", "card_declined", "expired_card", "processing_error"]
TokenErrorCode = Literal["invalid_token_id", "token_already_used"]


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """Money to be taken from a card. `order_id` is ours, and the acquirer's key to do it only once.

    token: what the customer's browser got for the card, used once. amount: satang. return_uri: where the
    acquirer sends the payer's browser after 3-D Secure.
    """

    order_id: str
    token: str = field(repr=False)
    amount: int
    return_uri: str = ""


@dataclass(frozen=True, slots=True)
class ChargeResult:
    """What the acquirer says of a charge.

    `declined`: it was tried and failed, for the reason `failure_code`. `refused`: the token is not good, so
    nothing was tried. `pending`: the acquirer has it and does not know yet. `unknown`: nobody can tell (no
    answer in time, or none that can be read), so it is asked again and never charged again. `not_sent`: it
    surely never got there. `missing`: the acquirer knows no such charge.
    charge_id: the acquirer's own. brand: lower case. paid_at: the acquirer's time, with `succeeded`.
    amount and currency: of the charge as the acquirer has it, in satang; None where it does not say.
    authorize_uri: with `pending`, the page where the payer authorises the charge by 3-D Secure, or empty.
    """

    outcome: ChargeOutcome
    charge_id: str = ""
    failure_code: DeclineCode | TokenErrorCode | None = None
    brand: str = ""
    last4: str = ""
    paid_at: datetime | None = None
    amount: int | None = None
    currency: str | None = None
    authorize_uri: str = ""


class Acquirer(TransferSender, Protocol):
    """One acquirer, configured. As a Sender it gives money back to cards.

    Trouble on the way is something `ChargeResult`, never an exception.
    """

    seconds: float
    """The longest that `charge` takes."""

    def charge(self, charge: ChargeRequest) -> ChargeResult:
        """Take the money, once for an `order_id`."""

    def find(self, order_id: str, *, charge_id: str, starts_at: datetime) -> ChargeResult:
        """What became of a charge that was asked for after `starts_at`. Never charges.

        charge_id: the acquirer's, empty where we never heard it.
        """
