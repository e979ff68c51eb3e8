"""`thaiqr payments watch`: show payments as they change."""

from typing import Annotated

import typer

from thaiqr.cli import feed, waiting
from thaiqr.cli.commands import PAYMENT
from thaiqr.cli.exits import Exit
from thaiqr.cli.session import AsJson, Profile, Session, opened
from thaiqr.models import PaymentEvent


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
    session.output.show(payment, PAYMENT)
    if payment.status in {"failed", "expired"}:
        raise typer.Exit(Exit.NOT_PAID)


def _watch_all(session: Session) -> None:
    session.output.note("Watching payments. Ctrl-C ends.")
    for event in feed.follow(session, feed.newest_sequence(session.client)):
        if isinstance(event, PaymentEvent):
            session.output.event(event, f"{event.data.amount_display}  {event.data.reference or '-'}")
