"""Those around a transfer: whom the money is for, and a bank that answers as told."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from banks import TransferOrder, TransferPurpose, TransferResult
from core import clock, ids
from transfers import services
from transfers.models import Transfer

ROUTE = "bank:sandbox"
Reply = TransferResult | BaseException | Callable[[], TransferResult]


class RecordingHandler:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.completed: list[tuple[str, TransferResult]] = []
        self.breaks_at = ""
        self.holds = False

    def lock(self, order_id: str) -> None:
        self._reach("lock")

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        return self.holds

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        self._reach("begin")
        self.began.append(order_id)

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        self._reach("settle")
        self.completed.append((order_id, result))

    @property
    def fates(self) -> list[str]:
        return [result.status for _, result in self.completed]

    def _reach(self, point: str) -> None:
        if point == self.breaks_at:
            raise Killed


class Killed(BaseException):
    """What `kill -9` looks like from inside: nothing may catch it."""


class Bank:
    """A way to send money that answers with the given words in turn, the last one for ever."""

    def __init__(self, *, sends: list[Reply] | None = None, inquiries: list[Reply] | None = None) -> None:
        self._sends: list[Reply] = sends or [TransferResult("processing", "b-1")]
        self._inquiries: list[Reply] = inquiries or [TransferResult("succeeded", "b-1")]
        self._turn = threading.Lock()
        self.sent: list[str] = []
        self.inquired: list[str] = []

    def send(self, order: TransferOrder) -> TransferResult:
        return self._say(self.sent, self._sends, order)

    def inquire(self, order: TransferOrder) -> TransferResult:
        return self._say(self.inquired, self._inquiries, order)

    def _say(self, asked: list[str], replies: list[Reply], order: TransferOrder) -> TransferResult:
        with self._turn:
            asked.append(order.order_id)
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, TransferResult) else reply()


def an_order(purpose: TransferPurpose = "withdrawal", **changes: Any) -> TransferOrder:
    prefix = "wd_" if purpose == "withdrawal" else "ref_"
    told: dict[str, Any] = {
        "order_id": ids.new(prefix, clock.now()),
        "amount": 150_000,
        "bank_code": "014",
        "account": "4051234567",
        "account_name": "สมชาย ใจดี",
        "charge_id": "",
    }
    return TransferOrder(purpose=purpose, **told | changes)


def queued(purpose: TransferPurpose = "withdrawal", at: datetime | None = None, **changes: Any) -> Transfer:
    """An order that is due."""
    return services.queue(an_order(purpose, **changes), route=ROUTE, at=at or clock.now(), merchant_id="")


def pass_time(seconds: float = 3600) -> None:
    """All that waits or is leased has waited so much longer."""
    for transfer in Transfer.objects.all():
        transfer.due_at -= timedelta(seconds=seconds)
        if transfer.lease_until:
            transfer.lease_until -= timedelta(seconds=seconds)
        transfer.save(update_fields=["due_at", "lease_until"])


def send_due(owner: RecordingHandler, purpose: TransferPurpose = "withdrawal") -> int:
    return services.run_due(purpose, owner, now=clock.now)
