"""What the sandbox bank does with an order to pay, one entry each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core import references
from sandbox.errors import InvalidScenario
from sandbox.models import SandboxEntryType

AT_ONCE = timedelta(0)
# A bank does not know when a code ends; none lives longer than a day.
AFTER_EXPIRY = timedelta(days=1, minutes=1)


@dataclass(frozen=True, slots=True)
class SimulatedTransfer:
    """Money to a biller, in satang: what the books say of it, one entry after the other, and how often the
    bank tells of each, from `report_at` on."""

    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    report_at: datetime
    entries: tuple[SandboxEntryType, ...] = (SandboxEntryType.CREDIT,)
    callback_count: int = 1

    @property
    def booked_at(self) -> datetime:
        """When the books show it first: a bank that has told of something does not deny it when asked."""
        return min(self.paid_at, self.report_at) if self.callback_count else self.paid_at


@dataclass(frozen=True, slots=True)
class Scenario:
    """`play` makes of the transfer that was ordered those that happen.

    pays_after, reports_after: when, from now on, where the order does not say. needs_key: not offered on the
    page, which is open to anybody, because its money is for nobody that the service knows.
    """

    name: str
    label_en: str
    label_th: str
    apply: Callable[[SimulatedTransfer], list[SimulatedTransfer]] = lambda data: [data]
    needs_key: bool = False
    pays_after: timedelta = AT_ONCE
    reports_after: timedelta = AT_ONCE


def _changed(**changes: object) -> Callable[[SimulatedTransfer], list[SimulatedTransfer]]:
    return lambda data: [replace(data, **changes)]  # type: ignore[arg-type]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("paid", "Paid", "จ่ายสำเร็จ"),
        Scenario("declined", "Declined", "ถูกปฏิเสธ", _changed(entries=(SandboxEntryType.DECLINE,))),
        Scenario("late", "Paid after the code's time", "จ่ายหลัง QR หมดอายุ", pays_after=AFTER_EXPIRY),
        Scenario(
            "reported_late",
            "Paid in time, told after the code's time",
            "จ่ายทันเวลา แต่แจ้งหลัง QR หมดอายุ",
            reports_after=AFTER_EXPIRY,
        ),
        Scenario("twice", "Paid twice", "จ่ายซ้ำสองครั้ง", lambda data: [data, data]),
        Scenario(
            "over",
            "Paid double the amount",
            "จ่ายเกิน เป็นสองเท่า",
            lambda data: [replace(data, amount=data.amount * 2)],
        ),
        Scenario(
            "under",
            "Paid half the amount",
            "จ่ายขาด เพียงครึ่งเดียว",
            lambda data: [replace(data, amount=max(data.amount // 2, 1))],
        ),
        Scenario("callback_lost", "Paid, never told", "จ่ายสำเร็จ แต่ไม่แจ้ง", _changed(callback_count=0)),
        Scenario(
            "callback_repeated",
            ("Paid, told three times"),
            "จ่ายสำเร็จ แจ้งซ้ำสามครั้ง",
            _changed(callback_count=3),
        ),
        Scenario(
            "unknown_reference",
            "Paid with a reference nobody issued",
            "จ่ายด้วยเลขอ้างอิงที่ไม่มีอยู่",
            lambda data: [replace(data, reference1=references.new())],
            needs_key=True,
        ),
        Scenario(
            "reversed",
            "Paid, and taken back a moment later",
            "จ่ายสำเร็จ แล้วถูกดึงเงินคืน",
            _changed(entries=(SandboxEntryType.CREDIT, SandboxEntryType.REVERSAL)),
        ),
    )
}


def find(name: str) -> Scenario:
    """Raises InvalidScenario."""
    try:
        return SCENARIOS[name]
    except KeyError:
        raise InvalidScenario(param="scenario") from None
