"""Payments that a statement file reports first: credited, and kept until somebody else confirms them."""

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, precondition, rule

from core import clock, thaiqr
from core import money as satang
from core.clock import BANGKOK
from receipts import acts
from receipts.acts import NotPossible
from receipts.models import Receipt
from tests.books.odd_town import WHICH, OddTown, nearly_always
from tests.books.things import Money, Payment
from tests.books.town import AMOUNTS, ENDINGS
from tests.receipts.statements.cast import load, plain


class StatementPayments(OddTown):
    """A shop whose bank loses callbacks; `malee` uploads the bank's statements."""

    reported = Bundle("reported")

    @rule(target=reported, amount=AMOUNTS, is_late=st.sampled_from([False, False, True]))
    def sell_by_statement(self, amount: int, is_late: bool) -> Payment:
        payment = self.create(amount, 1)
        if is_late:
            self.wait(61)
        self.import_line_of(payment)
        return payment

    def import_line_of(self, payment: Payment) -> None:
        now, code = clock.now(), thaiqr.parse(payment.code["qr_data"])
        at = now.astimezone(BANGKOK)
        names = (code.biller_id, code.reference1, code.reference2, code.reference3)
        cells = [f"{at:%Y-%m-%d}", f"{at:%H:%M:%S}", *(name or "" for name in names)]
        cells += [satang.baht(payment.amount), "credit", "Somchai Jaidee", "014"]
        assert load(plain(",".join(cells))).is_clean
        money = Money(self.bank.notice(payment.code), payment.amount, payment, is_confirmed=False)
        money.receipt_id = Receipt.objects.get(reference1=code.reference1).id
        self.books.take_in(money, now)

    @rule(payment=reported)
    def confirm_by_callback(self, payment: Payment) -> None:
        """The bank reports the same money at last, or once more."""
        money = next(money for money in self.books.money if money.own is payment)
        assert self.bank.post(money.notice).status_code == 200
        self.confirmed(money)

    @precondition(lambda self: self.books.money)
    @rule(which=WHICH, by=st.sampled_from(["malee", "somsak"]))
    def confirm_by_person(self, which: int, by: str) -> None:
        """Never by the one who uploaded the statement."""
        unconfirmed = [money for money in self.books.money if not money.is_confirmed]
        money = nearly_always(unconfirmed, self.books.money, which)
        may = not money.is_confirmed and by != "malee"
        try:
            acts.confirm(money.receipt_id, by=by, why="Seen in online banking.", now=clock.now())
        except NotPossible:
            assert not may
        else:
            assert may
            self.confirmed(money)

    def confirmed(self, money: Money) -> None:
        if not money.is_confirmed:
            self.books.confirm(money)

    @rule(target=OddTown.orders, payment=reported, ending=ENDINGS)
    def refund_what_a_statement_reported(self, payment: Payment, ending: str) -> object:
        return self.refund(payment, payment.left, ending)
