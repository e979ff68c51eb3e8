"""`thaiqr trigger`: make something happen to a test merchant, by the sandbox bank."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar, get_args

import typer

from thaiqr.choices import EventType, Scenario
from thaiqr.cli import amounts
from thaiqr.cli.amounts import Baht, Satang
from thaiqr.cli.exits import Exit
from thaiqr.cli.session import AsJson, Profile, Session, opened
from thaiqr.decoding import Model
from thaiqr.models import Payment, QrCode
from thaiqr.resources import Destination

T = TypeVar("T")
DEFAULT_AMOUNT = 15_000
WAIT_SECONDS = 60.0
PAUSE = 0.3
REPORTED_AFTER = timedelta(seconds=2)
# Accounts whose last digits tell the sandbox bank what to do.
REFUND_FAILS, PAYOUT_FAILS, PAYS_OUT = "4050000001", "4050000002", "4051234567"
HOLDER = "Somtam House"
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
EVENTS: tuple[str, ...] = get_args(EventType)
NAMES = "Events: " + ", ".join(EVENTS) + ". Scenarios of a payment: " + ", ".join(SCENARIOS) + "."


class Trigger:
    """Makes payments of an amount, and brings them where they should be."""

    def __init__(self, session: Session, amount: int) -> None:
        self.session, self.client, self.amount = session, session.client, amount

    def run(self, name: str) -> Model:
        """Make it happen; return the payment, refund or withdrawal. Raises ValueError for an unknown name."""
        if name in SCENARIOS:
            return self._scenario(next(each for each in SCENARIOS if each == name))
        steps = self.steps()
        if name not in steps:
            raise ValueError(f"Nothing is called {name!r}. {NAMES}")
        return steps[name]()

    def steps(self) -> dict[str, Callable[[], Model]]:
        """What to do for each event."""
        return {
            "payment.pending": lambda: self._payment(self._code()),
            "payment.succeeded": self._paid,
            "payment.failed": lambda: self._scenario("declined"),
            # The acquirer says the fee a minute later.
            "payment.fee_known": lambda: self.client.payments.create(
                token_id="tok_test_fee_late",  # noqa: S106 (a card for tests)
                amount=self.amount,
            ),
            "settlement.arrived": self._settled,
            "payment.hold_lifted": self._lifted,
            "payment.exception": lambda: self._scenario("under"),
            "payment.exception_resolved": self._accepted,
            "refund.completed": lambda: self._refund(None),
            "refund.failed": lambda: self._refund(REFUND_FAILS),
            "withdrawal.failed": lambda: self._withdrawal(PAYOUT_FAILS, "failed"),
            **dict.fromkeys(
                ("withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded"),
                lambda: self._withdrawal(PAYS_OUT, "succeeded"),
            ),
        }

    def _code(self) -> QrCode:
        return self.client.qr_codes.create(amount=self.amount, reference="trigger")

    def _payment(self, code: QrCode) -> Payment:
        return self.client.payments.get(code.payment_id)

    def _scenario(self, scenario: Scenario) -> Payment:
        """Pay a new code. For money after the expiry the code is ended early, so that nobody waits."""
        code = self._code()
        if scenario == "late":
            self.client.qr_codes.expire(code.qr_code_id)
            self.client.sandbox.pay(qr_data=code.qr_data, scenario="paid")
            return self._until(
                code, lambda payment: bool(payment.exceptions) or payment.status == "succeeded"
            )
        if scenario == "reported_late":
            report_at = datetime.now(UTC) + REPORTED_AFTER
            self.client.sandbox.pay(qr_data=code.qr_data, scenario=scenario, report_at=report_at)
            self.client.qr_codes.expire(code.qr_code_id)
            return self._until(code, lambda payment: payment.status == "succeeded")
        self.client.sandbox.pay(qr_data=code.qr_data, scenario=scenario)
        return self._until(code, ENDINGS.get(scenario, lambda payment: payment.status != "pending"))

    def _paid(self) -> Payment:
        return self._scenario("paid")

    def _accepted(self) -> Payment:
        payment = self._scenario("under")
        self.client.payments.accept_exception(payment.payment_id, payment.exceptions[0].exception_id)
        return self.client.payments.get(payment.payment_id)

    def _lifted(self) -> Payment:
        """The shop must hold payments of other payers, which its owner decides."""
        code = self.client.qr_codes.create(amount=self.amount, client_bank_account="9999999999")
        self.client.sandbox.pay(qr_data=code.qr_data, scenario="paid")
        self._until(code, lambda payment: payment.status == "succeeded")
        return self.client.payments.lift_hold(code.payment_id)

    def _settled(self) -> Payment:
        """The bank transfers the money a day later, and the service reads it within ten minutes."""
        made = self.client.payments.create(token_id="tok_test_visa", amount=self.amount)  # noqa: S106
        self.client.sandbox.advance_clock(advance_minutes=24 * 60)
        return made

    def _refund(self, account: str | None) -> Model:
        paid = self._paid()
        destination = Destination("SCB", account, HOLDER) if account else None
        made = self.client.refunds.create(payment_id=paid.payment_id, destination=destination)
        return self._wait(
            lambda: self.client.refunds.get(made.refund_id), lambda refund: refund.status != "pending"
        )

    def _withdrawal(self, account: str, status: str) -> Model:
        self._paid()
        made = self.client.withdrawals.create(
            amount=self.amount, bank_code="SCB", bank_account=account, account_name=HOLDER
        )
        read = lambda: self.client.withdrawals.get(made.withdrawal_id)  # noqa: E731
        return self._wait(read, lambda sent: sent.status == status)

    def _until(self, code: QrCode, is_done: Callable[[Payment], bool]) -> Payment:
        return self._wait(lambda: self._payment(code), is_done)

    def _wait(self, read: Callable[[], T], is_done: Callable[[T], bool]) -> T:
        """Read until it is done. Ends the command if it takes too long."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_done(value := read()):
            if time.monotonic() > deadline:
                self.session.output.fail("It has not happened within a minute. Do the workers run?")
                raise typer.Exit(Exit.NOT_PAID)
            time.sleep(PAUSE)
        return value


ENDINGS: dict[str, Callable[[Payment], bool]] = {
    "twice": lambda payment: payment.status == "succeeded" and bool(payment.exceptions),
    "over": lambda payment: bool(payment.exceptions),
    "under": lambda payment: bool(payment.exceptions),
    # The money of this one finds no payment. It waits for staff.
    "unknown_reference": lambda payment: True,
    "reversed": lambda payment: payment.status == "refunded",
}
"""Where a scenario ends, unless it is that the payment is no longer pending."""
FIELDS = {"Payment": "payment_id", "Refund": "refund_id", "Withdrawal": "withdrawal_id"}


def trigger(
    name: Annotated[str, typer.Argument(metavar="EVENT|SCENARIO", help=NAMES)],
    amount: Baht = None,
    satang: Satang = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Make a test payment and bring it to an event or a scenario. Only for test keys."""
    with opened(profile, json=json) as session:
        session.require_test_key()
        made = Trigger(session, amounts.optional_satang(amount, satang) or DEFAULT_AMOUNT).run(name)
        shown = [FIELDS[type(made).__name__], "status", "amount_display", "failure_code"]
        session.output.show(made, [*shown, "amount_received"] if isinstance(made, Payment) else shown)
