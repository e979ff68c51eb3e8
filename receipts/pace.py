"""How much a bank is asked at once, and for how long it is left alone then: what it limits are calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate

from banks import Bank, Question

# Side by side in one round, whatever a bank takes.
LINES = 32


@dataclass(frozen=True, slots=True)
class Pace:
    """Of one bank, all merchants together."""

    bank: type[Bank]

    @property
    def room(self) -> int:
        """How many calls a round may make."""
        return min(max(int(self.bank.calls_per_second), 1), LINES)

    def fitting(self, questions: Sequence[Question], room: int) -> list[int]:
        """How many calls of the room each of the first questions takes, as far as they fit.

        One always fits into a whole room, however many calls it takes.
        """
        costs = [min(self.bank.calls_for(each), self.room) for each in questions]
        return [cost for cost, total in zip(costs, accumulate(costs), strict=True) if total <= room]

    def pause(self, questions: Sequence[Question]) -> timedelta:
        """After the calls of these questions."""
        return self.pause_after(sum(self.bank.calls_for(each) for each in questions))

    def pause_after(self, calls: int) -> timedelta:
        return timedelta(seconds=calls / self.bank.calls_per_second)
