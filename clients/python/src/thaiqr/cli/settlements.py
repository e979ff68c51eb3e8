"""`thaiqr settlements`: what acquirers transfer for card payments."""

import typer

from thaiqr.cli.payments import Since, Until, Zone
from thaiqr.cli.qr import Limit
from thaiqr.cli.session import AsJson, Profile, opened

app = typer.Typer(no_args_is_help=True, help="List and read what acquirers transfer for card payments.")
FIELDS = (
    "settlement_id", "status", "acquirer", "payments", "gross", "fee", "fee_vat", "net_display", "created_at",
    "expected_at", "arrived_at",
)  # fmt: skip
COLUMNS = {
    "settlement_id": "ID",
    "status": "Status",
    "net_display": "Net",
    "payments": "Count",
    "arrived_at": "Arrived",
}


@app.command("list")
def list_settlements(
    since: Since = None,
    until: Until = None,
    timezone: Zone = "Asia/Bangkok",
    limit: Limit = 20,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """List settlements, the newest first."""
    with opened(profile, json=json) as session:
        found = session.client.settlements.list(
            start_date=since,
            end_date=until,
            timezone=timezone if since or until else None,
            page_size=min(limit, 100),
        )
        session.output.listing(found, COLUMNS, limit)


@app.command()
def get(settlement: str, json: AsJson = False, profile: Profile = None) -> None:
    """Show a settlement. List its payments with `thaiqr payments list --settlement ID`."""
    with opened(profile, json=json) as session:
        session.output.show(session.client.settlements.get(settlement), FIELDS)
