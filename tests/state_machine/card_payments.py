"""Steps with card payments: charged, declined, lost, authorised by 3-D Secure, refunded."""

from typing import Any
from urllib.parse import urlsplit

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, invariant, precondition, rule

from core import clock
from payments import tasks
from sandbox import cards
from sandbox.models import SandboxCardRefund, SandboxCharge
from tests.state_machine.exceptions_machine import INDEX, pick_mostly
from tests.state_machine.expected import Charge, ChargeOutcome, Payment
from tests.state_machine.http_service import LOST_TOKEN, HttpResponse_, account, refusal, unreachable_bank
from tests.state_machine.payments_machine import AMOUNTS, PaymentsMachine

# For each token: the outcome at the acquirer, and the status in the API response.
TOKENS: dict[str, tuple[ChargeOutcome, str]] = {
    "tok_test_visa": ("succeeded", "succeeded"),
    "tok_test_timeout": ("succeeded", "pending"),
    LOST_TOKEN: ("missing", "pending"),
    "tok_test_3ds": ("pending", "pending"),
}
REFUSALS = {
    "tok_test_insufficient_funds": (402, "insufficient_funds"),
    "tok_test_declined": (402, "card_declined"),
    "tok_test_used": (400, "token_already_used"),
}


class CardPayments(PaymentsMachine):
    """Rules of the state machine for a shop that also accepts cards."""

    cards = Bundle("cards")

    @rule(target=cards, amount=AMOUNTS, token=st.sampled_from(["tok_test_visa", *TOKENS]))
    def charge(self, amount: int, token: str) -> Payment:
        outcome, status = TOKENS[token]
        response = self.pay_by_card(token, amount)
        assert response.status_code == 200, response.content
        shown = response.json()
        assert shown["status"] == status
        payment = self.charged(shown, amount, outcome)
        self.model.apply_charge_outcome(payment, status)
        return payment

    @rule(amount=AMOUNTS, token=st.sampled_from(["", *REFUSALS]))
    def charge_without_success(self, amount: int, token: str) -> None:
        """Charge a card that is refused. Without a token the acquirer is unreachable."""
        with unreachable_bank(not token):
            refused = self.pay_by_card(token or "tok_test_visa", amount)
        expected = REFUSALS.get(token, (402, "processing_error"))
        assert refusal(refused) == expected
        if expected[0] == 402:
            outcome: ChargeOutcome = "declined" if token else "missing"
            self.charged(refused.json()["error"], amount, outcome).status = "failed"

    @rule(payment=cards, agrees=st.booleans())
    def authorize(self, payment: Payment, agrees: bool) -> None:
        """The payer accepts or refuses at the bank, perhaps too late. The browser then returns to us."""
        charge = payment.charge
        if charge is None or not charge.authorize_uri:
            return
        charge_id = charge.authorize_uri.rpartition("/")[2]
        now = clock.now()
        made = cards.authorize(charge_id, is_authorized=agrees, now=now)
        if charge.outcome_at(now) == "pending":
            charge.outcome = "succeeded" if agrees else "declined"
        assert made is not None
        assert self.shop.get(urlsplit(made.return_uri).path).status_code == 200

    @rule(is_acquirer_up=st.sampled_from([True, True, True, False]))
    def inquire_charges(self, is_acquirer_up: bool) -> None:
        with unreachable_bank(not is_acquirer_up):
            tasks.inquire_due()
        if is_acquirer_up:
            self.model.inquire_charges(clock.now())

    @precondition(lambda self: self.card_payments())
    @rule(
        target=PaymentsMachine.orders,
        index=INDEX,
        part=st.sampled_from([1, 2]),
        more=st.sampled_from([0, 1]),
        is_sent=st.booleans(),
    )
    def refund_to_card(self, index: int, part: int, more: int, is_sent: bool) -> Any:
        """Refund the rest or half of it, sometimes with one satang too much."""
        paid = [payment for payment in self.card_payments() if payment.status == "succeeded"]
        payment = pick_mostly(paid, self.card_payments(), index)
        expected_amount = max(payment.left // part + more, 1)
        response = self.ask("/v1/refunds", {"payment_id": payment.id, "amount": expected_amount})
        refused = self.model.refusal_of_refund(payment, expected_amount)
        order = self.check_order(response, refused, "refund", expected_amount, "", payment)
        if is_sent:
            self.carry_out(is_bank_up=True)
        return order

    @rule(payment=cards)
    def refund_card_payment_to_an_account(self, payment: Payment) -> None:
        refused = self.ask("/v1/refunds", {"payment_id": payment.id, "destination": account("4567")})
        not_refundable = self.model.refusal_of_refund(payment, payment.left)
        is_spent = not_refundable is None or not_refundable[0] == 402
        assert refusal(refused) == ((400, "invalid_destination") if is_spent else not_refundable)

    @invariant()
    def check_acquirer(self) -> None:
        """Compare the charges and refunds at the acquirer with the model."""
        charged, refunded = self.expected_at_acquirer()
        assert dict(SandboxCharge.objects.values_list("order_id", "amount")) == charged
        assert dict(SandboxCardRefund.objects.values_list("order_id", "amount")) == refunded

    def expected_at_acquirer(self) -> tuple[dict[str, int], dict[str, int]]:
        charged = {
            payment.id: payment.amount
            for payment in self.model.payments.values()
            if payment.charge and payment.charge.outcome != "missing"
        }
        to_cards = [
            order for order in self.model.with_purpose("refund") if order.is_to_card and order.sent_at
        ]
        return charged, {order.id: order.amount for order in to_cards}

    def card_payments(self) -> list[Payment]:
        return [payment for payment in self.model.payments.values() if payment.charge]

    def pay_by_card(self, token: str, amount: int) -> HttpResponse_:
        request_body = {"token_id": token, "amount": amount, "currency": "THB"}
        return self.ask("/v1/payments", request_body, stored_statuses=(200, 402))

    def charged(self, shown: dict[str, Any], amount: int, outcome: ChargeOutcome) -> Payment:
        charge = Charge(outcome, clock.now(), shown.get("authorize_uri") or "")
        payment = Payment(shown, amount, charge=charge)
        self.model.payments[payment.id] = payment
        return payment
