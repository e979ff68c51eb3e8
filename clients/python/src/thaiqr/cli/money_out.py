"""`thaiqr refund`, `thaiqr withdraw` and `thaiqr balance`."""

from typing import Annotated, Any

import typer

from thaiqr.cli import amounts, waiting
from thaiqr.cli.amounts import Baht, Satang
from thaiqr.cli.commands import Yes
from thaiqr.cli.exits import Exit
from thaiqr.cli.session import AsJson, Key, Profile, Session, ask, opened
from thaiqr.models import Refund, Withdrawal
from thaiqr.resources import Destination

REFUND_FIELDS = (
    "refund_id", "payment_id", "status", "amount_display", "pending_reason", "awaiting_approval",
    "failure_code", "created_at", "completed_at",
)  # fmt: skip
WITHDRAWAL_FIELDS = (
    "withdrawal_id", "status", "amount_display", "bank_name", "bank_account", "account_name",
    "awaiting_approval", "failure_code", "created_at", "completed_at",
)  # fmt: skip
WAIT_SECONDS = 120.0

Wait = Annotated[bool, typer.Option("--wait", help="Wait for the bank, up to two minutes.")]
Reference = Annotated[str | None, typer.Option(help="Your own number of it.")]


def refund(
    payment: Annotated[str, typer.Argument(metavar="PAYMENT_ID")],
    amount: Baht = None,
    satang: Satang = None,
    reason: Annotated[
        str | None,
        typer.Option(help="requested_by_customer, duplicate, fraudulent, late_payment or other."),
    ] = None,
    note: Annotated[str | None, typer.Option(help="A note for yourself.")] = None,
    bank: Annotated[str | None, typer.Option(help="Another account than the payer's: its bank, ...")] = None,
    account: Annotated[str | None, typer.Option(help="... its number ...")] = None,
    name: Annotated[str | None, typer.Option(help="... and its holder.")] = None,
    idempotency_key: Key = None,
    wait: Wait = False,
    yes: Yes = False,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Refund a payment: an amount, or all that remains. Asks first, unless --yes."""
    with opened(profile, json=json, tells_key=True) as session:
        to_refund = amounts.optional_satang(amount, satang)
        shown = "all that remains" if to_refund is None else amounts.display(to_refund)
        ask(session.output, f"Refund {shown} of {payment}?", yes)
        choices: Any = {"reason": reason}
        made = session.client.refunds.create(
            payment_id=payment,
            amount=to_refund,
            note=note,
            destination=_destination(bank, account, name),
            idempotency_key=idempotency_key,
            **choices,
        )
        if wait:
            made = waiting.until(
                lambda: session.client.refunds.get(made.refund_id),
                lambda refund: refund.status != "pending" or refund.pending_reason == "awaiting_destination",
                session.output,
                lambda refund: f"{refund.status}: waiting for the bank",
                seconds=WAIT_SECONDS,
            )
        session.output.show(made, REFUND_FIELDS)
        _check_completed(made, "completed", wait)


def withdraw(
    bank: Annotated[str, typer.Option(help="The bank: SCB, KBANK, 014 ... (`thaiqr banks`).")],
    account: Annotated[str, typer.Option(help="The account number.")],
    name: Annotated[str, typer.Option(help="The holder of the account.")],
    amount: Baht = None,
    satang: Satang = None,
    reference: Reference = None,
    idempotency_key: Key = None,
    wait: Wait = False,
    yes: Yes = False,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Send money from the balance to a bank account. Asks first, unless --yes."""
    with opened(profile, json=json, tells_key=True) as session:
        to_send = amounts.satang_of(amount, satang)
        ask(session.output, f"Send {amounts.display(to_send)} to {name}, {bank} {account}?", yes)
        made = session.client.withdrawals.create(
            amount=to_send,
            bank_code=bank,
            bank_account=account,
            account_name=name,
            reference=reference,
            idempotency_key=idempotency_key,
        )
        if wait:
            made = waiting.until(
                lambda: session.client.withdrawals.get(made.withdrawal_id),
                lambda sent: sent.status not in {"pending", "processing"},
                session.output,
                lambda sent: f"{sent.status}: waiting for the bank",
                seconds=WAIT_SECONDS,
            )
        session.output.show(made, WITHDRAWAL_FIELDS)
        _check_completed(made, "succeeded", wait)


def balance(json: AsJson = False, profile: Profile = None) -> None:
    """Show the balance."""
    with opened(profile, json=json) as session:
        _show_balance(session)


def banks(json: AsJson = False, profile: Profile = None) -> None:
    """List the banks that withdrawals and refunds can name."""
    with opened(profile, json=json) as session:
        columns = {"bank_code": "Code", "short_name": "Short name", "name": "Name", "name_th": "ชื่อ"}
        session.output.table(session.client.banks.list(), columns)


def _show_balance(session: Session) -> None:
    found = session.client.balance.get()
    if session.output.json:
        session.output.data(found.raw)
        return
    for name in ("available", "reserved", "owed", "unconfirmed", "pending_settlement"):
        value = getattr(found, name)
        if value or name in {"available", "reserved"}:
            session.output.say(f"{name:<18} {amounts.display(value):>20}")


def _destination(bank: str | None, account: str | None, name: str | None) -> Destination | None:
    if bank and account and name:
        return Destination(bank, account, name)
    if bank or account or name:
        raise ValueError("Another account needs --bank, --account and --name.")
    return None


def _check_completed(made: Refund | Withdrawal, status: str, wait: bool) -> None:
    if wait and made.status != status:
        raise typer.Exit(Exit.NOT_PAID)
