"""`thaiqr qr create` and `get`: draw codes."""

from typing import Annotated

import typer
from rich.text import Text

from thaiqr.cli import amounts, terminal_qr, waiting
from thaiqr.cli.amounts import Baht, Satang
from thaiqr.cli.exits import Exit
from thaiqr.cli.metadata import Metadata, parse_metadata
from thaiqr.cli.output import Output, local
from thaiqr.cli.session import AsJson, Key, Profile, Session, opened
from thaiqr.models import Payment, QrCode

FIELDS = (
    "qr_code_id", "payment_id", "status", "amount_display", "reference", "expires_at", "payment_page_url",
    "qr_image_url",
)  # fmt: skip
Invert = Annotated[
    bool, typer.Option("--invert", help="Draw for dark text on light ground, in a terminal without colour.")
]
CodeId = Annotated[str, typer.Argument(metavar="QR_CODE_ID")]


def create(
    amount: Baht = None,
    satang: Satang = None,
    reference: Annotated[str | None, typer.Option(help="Your order or invoice number.")] = None,
    expiry: Annotated[
        int | None, typer.Option(metavar="MINUTES", help="Minutes to pay; 15 by default.")
    ] = None,
    metadata: Metadata = None,
    idempotency_key: Key = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is paid, with a countdown.")] = False,
    invert: Invert = False,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Create a QR code and draw it here. With --wait, end with 0 when it is paid, else with 6."""
    with opened(profile, json=json) as session:
        code = session.client.qr_codes.create(
            amount=amounts.satang_of(amount, satang),
            reference=reference,
            expiry_minutes=expiry,
            metadata=parse_metadata(metadata),
            idempotency_key=idempotency_key,
        )
        _show(session.output, code, invert)
        if wait:
            _wait_until_paid(session, code)


def get(code: CodeId, invert: Invert = False, json: AsJson = False, profile: Profile = None) -> None:
    """Show a QR code again."""
    with opened(profile, json=json) as session:
        _show(session.output, session.client.qr_codes.get(code), invert)


def _show(output: Output, code: QrCode, invert: bool) -> None:
    if not output.json and code.status == "pending":
        output.console.print(terminal_qr.draw(code.qr_data, output.console, invert=invert), soft_wrap=True)
    output.show(code, FIELDS)


def _wait_until_paid(session: Session, code: QrCode) -> None:
    """Wait until the payment has a final state. Raises typer.Exit unless it is paid."""
    payment = waiting.until(
        lambda: session.client.payments.get(code.payment_id),
        lambda payment: payment.status != "pending",
        session.output,
        lambda _: f"waiting for the payment, {waiting.countdown(code.expires_at)} left",
    )
    if session.output.json:
        session.output.data(payment.raw)
    else:
        session.output.console.print(_ending(payment))
    if payment.status != "succeeded":
        raise typer.Exit(Exit.NOT_PAID)


def _ending(payment: Payment) -> Text:
    if payment.status == "succeeded" and payment.completed_at:
        return Text(f"Paid: {payment.amount_display} at {local(payment.completed_at)}.", style="green")
    return Text(f"Not paid: {payment.status}.", style="red")
