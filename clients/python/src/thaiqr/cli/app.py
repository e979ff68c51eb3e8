"""The commands of `thaiqr`."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thaiqr._version import __version__
from thaiqr.cli import commands, events, exits, hooks, payments, qr, request_log, shortcuts
from thaiqr.cli.configure import configure
from thaiqr.cli.lint import lint
from thaiqr.cli.listening import listen
from thaiqr.cli.money_out import balance, banks, refund, withdraw
from thaiqr.cli.output import show_any_character
from thaiqr.cli.session import AsJson
from thaiqr.cli.triggers import trigger
from thaiqr.cli.verify import verify

ORDER = [
    "qr", "payments", "exceptions", "payment-links", "open", "refund", "refunds", "claim-link", "withdraw",
    "withdrawals", "balance", "settlements", "banks", "webhooks", "destinations", "events", "listen",
    "trigger", "clock", "requests", "get", "lint", "verify", "configure",
]  # fmt: skip


class InOrder(TyperGroup):
    """Lists the commands in the order in which a shop meets them."""

    def list_commands(self, _: Any) -> list[str]:
        return ORDER


app = typer.Typer(
    cls=InOrder,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=exits.HELP,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"thaiqr {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Thai QR Payments on the command line.

    The key and the service come from THAIQR_API_KEY and THAIQR_BASE_URL, or from a profile (`thaiqr
    configure`).
    """
    show_any_character()


GROUPS = commands.groups()
MORE: dict[str, tuple[Callable[..., None], ...]] = {
    "qr": (qr.create, qr.get),
    "payments": (payments.watch,),
    "webhooks": (hooks.get, hooks.create, hooks.change, hooks.secret, hooks.replay),
    "events": (events.tail, events.resend),
    "requests": (request_log.tail,),
}
for name, group in GROUPS.items():
    for each in MORE.get(name, ()):
        group.command()(each)
    app.add_typer(group, name=name)
GROUPS["refunds"].command("create")(refund)
GROUPS["withdrawals"].command("create")(withdraw)
app.command("open")(shortcuts.open_page)
app.command("claim-link")(shortcuts.claim_link)
for each in (refund, withdraw, balance, banks, listen, trigger, shortcuts.get, lint, verify, configure):
    app.command()(each)
