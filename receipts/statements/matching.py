"""Which receipt a line of a statement belongs to: one that is there and has no line yet, or a new one."""

from collections.abc import Callable, Sequence
from datetime import datetime

from core import ids, rows
from receipts import joining
from receipts.models import Kind, Outcome, Receipt, Source
from receipts.statements.lines import Line

What = tuple[str, str, int]
ALIKE = """
WHERE t.reference1 = ANY(%s) AND t.biller_id = ANY(%s) AND t.bank = %s
    AND (t.paid_at >= %s AND t.paid_at < %s OR t.kind = %s)
ORDER BY t.id
"""
LINED = "SELECT receipt_id FROM receipts_statementline WHERE receipt_id = ANY(%s)"


class Matching:
    """The receipts of a batch of lines, one to each line. The caller holds the locks of their money."""

    def __init__(self, bank: str, lines: Sequence[Line]) -> None:
        self._bank = bank
        self._free: dict[What, list[Receipt]] = {}
        self._made: list[Receipt] = []
        alike = _alike(bank, lines) if lines else []
        self._orphans = _orphans(alike)
        for receipt in _without_line(alike):
            self._free.setdefault(_what(receipt), []).append(receipt)
        self._given: dict[Line, list[Receipt]] = {}
        self._reversals: dict[What, list[joining.Movement]] = {}
        movements: list[joining.Movement] = [*alike, *lines]
        for movement in movements:
            if movement.kind == Kind.REVERSAL:
                self._reversals.setdefault(_what(movement), []).append(movement)
        # All lines choose by the second first, so that no line takes the receipt of its neighbour.
        left = [line for line in lines if not self._give(line, _is_same_second)]
        for line in left:
            self._give(line, self._are_one)

    def take(self, line: Line) -> Receipt | None:
        """The receipt of this money that was without a line, if any. Equal lines get one after the other."""
        given = self._given.get(line)
        return given.pop(0) if given else None

    def _are_one(self, receipt: Receipt, line: Line) -> bool:
        reversals = self._reversals.get(_what(line), []) if line.kind == "credit" else []
        return joining.are_one(receipt, line) and not joining.are_parted(receipt, line, reversals)

    def _give(self, line: Line, fits: Callable[[Receipt, Line], bool]) -> bool:
        """Give the nearest fitting receipt to the line; no other line gets it."""
        free = self._free.get(_what(line), [])
        fitting = [receipt for receipt in free if fits(receipt, line)]
        if not fitting:
            return False
        chosen = min(fitting, key=lambda receipt: joining.distance(receipt, line))
        free.remove(chosen)
        self._given.setdefault(line, []).append(chosen)
        return True

    def make(self, line: Line, digest: str, occurrence: int, *, now: datetime) -> Receipt:
        """A receipt of what nobody else has told."""
        receipt = rows.new(
            Receipt,
            id=ids.new("rcp_", now),
            bank=self._bank,
            bank_transaction_id=_own_name(digest, occurrence),
            source=Source.STATEMENT,
            kind=line.kind,
            is_confirmed=Kind(line.kind) != Kind.CREDIT,
            biller_id=line.biller_id,
            reference1=line.reference1,
            reference2=line.reference2,
            reference3=line.reference3,
            amount=line.amount,
            paid_at=line.paid_at,
            payer_name=line.payer_name,
            payer_bank_code=line.payer_bank_code,
            received_at=now,
        )
        self._made.append(receipt)
        return receipt

    @property
    def made(self) -> Sequence[Receipt]:
        """What no receipt was there for."""
        return self._made

    def save(self) -> None:
        """Store those that were made, with the names that tie reversals to their credits.

        The earliest reversal chooses first: of two, the other may fit a credit that came after this one too.
        """
        for orphan in sorted(self._orphans, key=lambda receipt: receipt.paid_at):
            self._name_credit_of(orphan)
        for debit in sorted(self._made, key=lambda receipt: receipt.paid_at):
            if debit.kind == Kind.REVERSAL and (credit := self._only_credit(debit)):
                debit.bank_transaction_id = credit.transaction_id
        rows.copy_in(self._made)

    def _name_credit_of(self, orphan: Receipt) -> None:
        """Only these lines tell of the credit: the one of them that fits, if none that is stored does."""
        before = joining.credited_before(orphan)
        fitting = [
            receipt
            for receipt in self._made_like(orphan)
            if receipt.kind == Kind.CREDIT and receipt.paid_at < before and not receipt.also_known_as
        ]
        if len(fitting) == 1 and not joining.nameless_credits(orphan).exists():
            fitting[0].also_known_as = orphan.bank_transaction_id

    def _only_credit(self, debit: Receipt) -> Receipt | None:
        """The credit that a debit takes back: the one that fits and that nothing has taken back yet."""
        stored = Receipt.objects.filter(
            bank=self._bank, biller_id=debit.biller_id, reference1=debit.reference1, amount=debit.amount
        )
        alike = [*stored, *self._made_like(debit)]
        gone = {receipt.bank_transaction_id for receipt in alike if receipt.kind == Kind.REVERSAL}
        gone |= {receipt.also_known_as for receipt in alike if receipt.kind == Kind.REVERSAL}
        left = [
            receipt
            for receipt in alike
            if receipt.kind == Kind.CREDIT
            and receipt.paid_at < joining.credited_before(debit)
            and not {receipt.bank_transaction_id, receipt.transaction_id} & gone
        ]
        if len(left) != 1 or joining.named(self._bank, left[0].transaction_id, Kind.REVERSAL):
            return None
        credit: Receipt = left[0]
        return credit

    def _made_like(self, receipt: Receipt) -> list[Receipt]:
        return [made for made in self._made if _what(made) == _what(receipt)]


def _alike(bank: str, lines: Sequence[Line]) -> list[Receipt]:
    """Receipts that could be one of these, oldest first, and every reversal of their money."""
    billers, references = {line.biller_id for line in lines}, {line.reference1 for line in lines}
    since, until = joining.bank_days(line.paid_at for line in lines)
    return rows.find(Receipt, ALIKE, list(references), list(billers), bank, since, until, Kind.REVERSAL)


def _without_line(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Asked for by itself: a join of two tables that the planner does not know may read all of both."""
    if not receipts:
        return []
    wanted = [receipt.id for receipt in receipts]
    told = {receipt_id for (receipt_id,) in rows.run(LINED, [wanted]).fetchall()}
    return [receipt for receipt in receipts if receipt.id not in told]


def _orphans(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Reversals of credits that the bank took back before anybody told us of them."""
    return [
        receipt
        for receipt in receipts
        if receipt.kind == Kind.REVERSAL
        and receipt.outcome == Outcome.UNMATCHED
        and receipt.source != Source.STATEMENT
        and not joining.named(receipt.bank, receipt.bank_transaction_id, Kind.CREDIT)
    ]


def _what(money: joining.Movement) -> What:
    return money.biller_id, money.reference1, money.amount


def _is_same_second(receipt: Receipt, line: Line) -> bool:
    is_other_second, _ = joining.distance(receipt, line)
    return not is_other_second and joining.are_one(receipt, line)


def _own_name(digest: str, occurrence: int) -> str:
    """Of a line, which has no transaction id: the same in every export of its file."""
    return f"statement-{digest[:40]}-{occurrence}"
