"""`thaiqr open`, `claim-link` and `get`."""

import webbrowser
from typing import Annotated

import typer

from thaiqr import calls
from thaiqr.cli.exits import Exit
from thaiqr.cli.session import AsJson, Key, Profile, opened
from thaiqr.client import ThaiQR


def open_page(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a QR code, a payment or a payment link.")],
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Open the page for the customer in the browser. With --json only print its address."""
    with opened(profile, json=json) as session:
        url = _page(session.client, id)
        if url is None:
            session.output.fail(f"{id} was paid by card, so it has no page.")
            raise typer.Exit(Exit.REFUSED)
        if session.output.json:
            session.output.data({"url": url})
        else:
            session.output.say(url)
            webbrowser.open(url)


def _page(client: ThaiQR, id: str) -> str | None:
    """The address of the page; None without one."""
    if id.startswith("pl_"):
        return client.payment_links.get(id).url
    if not id.startswith("pay_"):
        return client.qr_codes.get(id).payment_page_url
    payment = client.payments.get(id)
    if payment.qr_code_id:
        return client.qr_codes.get(payment.qr_code_id).payment_page_url
    return payment.authorize_uri


def claim_link(
    refund: Annotated[str, typer.Argument(metavar="REFUND_ID")],
    hours: Annotated[int | None, typer.Option(help="How long it works.")] = None,
    idempotency_key: Key = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Make a link by which the payer names the account of a refund, and print its address."""
    with opened(profile, json=json) as session:
        refunds = session.client.refunds
        refunds.create_claim_link(refund, expires_in_hours=hours, idempotency_key=idempotency_key)
        session.output.show(refunds.get_claim_link(refund), ("claim_url", "status", "expires_at"))


def get(
    path: Annotated[str, typer.Argument(help="Such as /v1/payments?limit=3.")],
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Read any path of the API. Prints JSON."""
    with opened(profile, json=json) as session:
        if not path.startswith("/"):
            raise ValueError(f"PATH must begin with /, such as /v1/balance, not {path!r}.")
        answer = session.client.send(calls.get(path, lambda data: data))
        session.output.data(answer, indent=None if session.output.json else 2)
