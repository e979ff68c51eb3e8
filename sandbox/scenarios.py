"""What the sandbox bank does with an order to pay, one entry each."""

import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from core import ids
from sandbox.errors import InvalidScenario

CREDIT, DECLINE = "credit", "decline"
REFERENCE = string.ascii_uppercase + string.digits


@dataclass(frozen=True, slots=True)
class Transfer:
    """Money to a biller, in satang, and what the bank will tell of it, from `report_at` on."""

    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    report_at: datetime
    notices: tuple[str, ...] = (CREDIT,)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`play` makes of the transfer that was ordered those that happen."""

    name: str
    english: str
    thai: str
    play: Callable[[Transfer], list[Transfer]]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("paid", "Paid", "จ่ายสำเร็จ", lambda told: [told]),
        Scenario("declined", "Declined", "ถูกปฏิเสธ", lambda told: [replace(told, notices=(DECLINE,))]),
        Scenario(
            "callback_repeated",
            "Paid, told three times",
            "จ่ายสำเร็จ แจ้งซ้ำสามครั้ง",
            lambda told: [replace(told, notices=(CREDIT,) * 3)],
        ),
        Scenario(
            "unknown_reference",
            "Paid with a reference nobody issued",
            "จ่ายด้วยเลขอ้างอิงที่ไม่มีอยู่",
            lambda told: [replace(told, reference1=ids.random_text(20, REFERENCE))],
        ),
    )
}


def named(name: str) -> Scenario:
    """Raises InvalidScenario."""
    try:
        return SCENARIOS[name]
    except KeyError:
        raise InvalidScenario(param="scenario") from None
