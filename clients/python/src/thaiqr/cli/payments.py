"""`thaiqr payments`: list, read and watch payments."""

from typing import Annotated, Any

import typer

from thaiqr.cli import feed, waiting
from thaiqr.cli.exits import Exit
from thaiqr.cli.qr import Limit
from thaiqr.cli.session import AsJson, Profile, Session, opened
from thaiqr.models import PaymentEvent

app = typer.Typer(no_args_is_help=True, help="List, read and watch payments.")
FIELDS = (
    "payment_id", "status", "amount_display", "reference", "description", "created_at", "completed_at",
    "expires_at", "amount_received", "amount_refunded", "fee", "fee_vat", "net", "failure_code", "qr_code_id",
    "settlement_id", "bank_reference", "metadata",
)  # fmt: skip
COLUMNS = {
    "payment_id": "ID",
    "status": "Status",
    "amount_display": "Amount",
    "reference": "Reference",
    "created_at": "Created",
}
Since = Annotated[str | None, typer.Option(metavar="DATE", help="From this date, such as 2026-11-21.")]
Until = Annotated[str | None, typer.Option(metavar="DATE", help="Until this date, included.")]
Zone = Annotated[str, typer.Option("--timezone", help="Of the dates.")]


@app.command("list")
def list_payments(
    status: Annotated[
        str | None, typer.Option(help="pending, succeeded, failed, expired or refunded.")
    ] = None,
    reference: Annotated[str | None, typer.Option(help="Only with this reference.")] = None,
    settlement: Annotated[str | None, typer.Option(help="Only those that this settlement pays.")] = None,
    since: Since = None,
    until: Until = None,
    timezone: Zone = "Asia/Bangkok",
    limit: Limit = 20,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """List payments, the newest first."""
    with opened(profile, json=json) as session:
        filters: Any = {
            "status": status,
            "reference": reference,
            "settlement_id": settlement,
            "start_date": since,
            "end_date": until,
            "timezone": timezone if since or until else None,
        }
        session.output.listing(
            session.client.payments.list(**filters, page_size=min(limit, 100)), COLUMNS, limit
        )


@app.command()
def get(payment: str, json: AsJson = False, profile: Profile = None) -> None:
    """Show a payment."""
    with opened(profile, json=json) as session:
        session.output.show(session.client.payments.get(payment), FIELDS)


@app.command()
def watch(
    payment: Annotated[str | None, typer.Argument(help="A payment id. Without one, watch all.")] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Wait until a payment has its final state, or show all payments as they change (Ctrl-C ends)."""
    with opened(profile, json=json) as session:
        if payment is None:
            _watch_all(session)
        else:
            _watch_one(session, payment)


def _watch_one(session: Session, payment_id: str) -> None:
    payment = waiting.until(
        lambda: session.client.payments.get(payment_id),
        lambda payment: payment.status != "pending",
        session.output,
        lambda payment: (
            f"{payment.status}: "
            + (f"{waiting.countdown(payment.expires_at)} left" if payment.expires_at else "waiting")
        ),
    )
    session.output.show(payment, FIELDS)
    if payment.status in {"failed", "expired"}:
        raise typer.Exit(Exit.NOT_PAID)


def _watch_all(session: Session) -> None:
    session.output.note("Watching payments. Ctrl-C ends.")
    for event in feed.follow(session, feed.newest_sequence(session.client)):
        if isinstance(event, PaymentEvent):
            session.output.event(event, f"{event.data.amount_display}  {event.data.reference or '-'}")
