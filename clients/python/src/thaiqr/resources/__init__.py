"""The operations of the API, each described once for both clients.

Amounts are integer satang: 150000 is 1,500.00 THB. Every POST takes an `idempotency_key`. Give one that names
your order, so that a restart of your program does not create it twice. Otherwise each call makes its own,
which covers its retries. Times are datetimes with an offset, or dates (of `timezone`, by default UTC).
"""

from copy import copy
from typing import Any, Generic, Self, cast

from thaiqr.calls import Client, Mode
from thaiqr.resources.balance import Balance
from thaiqr.resources.banks import Banks
from thaiqr.resources.events import Events
from thaiqr.resources.payment_links import PaymentLinks
from thaiqr.resources.payments import Payments
from thaiqr.resources.qr_codes import QrCodes
from thaiqr.resources.refunds import Destination, Refunds
from thaiqr.resources.requests import Requests
from thaiqr.resources.sandbox import Sandbox
from thaiqr.resources.settlements import Settlements
from thaiqr.resources.slips import Slips
from thaiqr.resources.transactions import Transactions
from thaiqr.resources.webhooks import Destinations, Webhooks
from thaiqr.resources.withdrawals import Withdrawals
from thaiqr.settings import Settings

__all__ = ["Destination", "Resources"]


class Resources(Generic[Mode]):
    """What both clients offer."""

    _settings: Settings
    _owns_http: bool

    def __init__(self, client: Client) -> None:
        self.balance: Balance[Mode] = Balance(client)
        self.banks: Banks[Mode] = Banks(client)
        self.destinations: Destinations[Mode] = Destinations(client)
        self.events: Events[Mode] = Events(client)
        self.payment_links: PaymentLinks[Mode] = PaymentLinks(client)
        self.payments: Payments[Mode] = Payments(client)
        self.qr_codes: QrCodes[Mode] = QrCodes(client)
        self.refunds: Refunds[Mode] = Refunds(client)
        self.requests: Requests[Mode] = Requests(client)
        self.sandbox: Sandbox[Mode] = Sandbox(client)
        self.settlements: Settlements[Mode] = Settlements(client)
        self.slips: Slips[Mode] = Slips(client)
        self.transactions: Transactions[Mode] = Transactions(client)
        self.webhooks: Webhooks[Mode] = Webhooks(client)
        self.withdrawals: Withdrawals[Mode] = Withdrawals(client)

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> Self:
        """This client with another time-out or number of retries, for one call or several.

        It has the same connections: close only the first client.
        """
        other = copy(self)
        other._settings = self._settings.changed(timeout, max_retries)
        other._owns_http = False
        Resources.__init__(other, cast(Any, other))
        return other
