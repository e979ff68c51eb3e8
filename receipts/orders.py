"""A bank's word about money that we sent out: kept like every notice, then acted on."""

from datetime import datetime

from banks import OrderNotice
from receipts import inbox
from receipts.models import Verdict
from refunds import services as refunds
from transfers import services as transfers
from transfers.services import Owner
from withdrawals import services as withdrawals

# Who is told, by the prefix of the order's id.
OWNERS: dict[str, Owner] = {"ref": refunds.OWNER, "wd": withdrawals.OWNER}


def accept(*, bank: str, body: bytes, notice: OrderNotice, now: datetime) -> None:
    """Keep the message in one commit and settle what it speaks of in the next.

    What fails after the first is not answered as received, so the bank tells it again.
    """
    verdict = Verdict(transfers.weigh(notice, bank=bank))
    inbox.keep(bank, body, verdict, None, now)
    if verdict == Verdict.NEW:
        prefix, _, _ = notice.order_id.partition("_")
        transfers.hear(notice, OWNERS[prefix], now=now)
