"""Payments that a statement reports first. Their money cannot leave until somebody confirms it."""

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, precondition, rule

from audit_trail.acts import ActRefused
from core import clock, money as satang
from core.clock import BANGKOK
from core.thai import thaiqr
from reconciliation.models import BankTransaction
from tests.reconciliation.builders import decide
from tests.reconciliation.statements.statement_files import csv_file, import_file
from tests.state_machine.exceptions_machine import INDEX, ExceptionsMachine, pick_mostly
from tests.state_machine.expected import BankMoney, Payment
from tests.state_machine.payments_machine import AMOUNTS, ENDINGS


class StatementPayments(ExceptionsMachine):
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
        assert import_file(csv_file(",".join(cells))).is_clean
        money = BankMoney(self.bank.notification(payment.code), payment.amount, payment, is_confirmed=False)
        money.bank_transaction_id = BankTransaction.objects.get(reference1=code.reference1).id
        self.model.receive(money, now)

    @rule(payment=reported)
    def confirm_by_callback(self, payment: Payment) -> None:
        """The bank notifies about money that a statement already reported."""
        money = next(money for money in self.model.money if money.named_payment is payment)
        assert self.bank.post(money.notification).status_code == 200
        self.confirmed(money)

    @precondition(lambda self: self.model.money)
    @rule(index=INDEX, by=st.sampled_from(["staff:malee", "staff:somsak"]))
    def confirm_by_person(self, index: int, by: str) -> None:
        """A member of staff confirms the money. The uploader of the statement may not."""
        unconfirmed = [money for money in self.model.money if not money.is_confirmed]
        money = pick_mostly(unconfirmed, self.model.money, index)
        is_allowed = not money.is_confirmed and by != "staff:malee"
        try:
            decide("confirm", money.bank_transaction_id, actor=by)
        except ActRefused:
            assert not is_allowed
        else:
            assert is_allowed
            self.confirmed(money)

    def confirmed(self, money: BankMoney) -> None:
        if not money.is_confirmed:
            self.model.confirm(money)

    @rule(target=ExceptionsMachine.orders, payment=reported, ending=ENDINGS)
    def refund_what_a_statement_reported(self, payment: Payment, ending: str) -> object:
        return self.refund(payment, payment.left, ending)
