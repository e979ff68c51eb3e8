"""The commands of `thaiqr`."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thaiqr._version import __version__
from thaiqr.cli import exits, hooks, payments, qr, request_log, settlements
from thaiqr.cli.configure import configure
from thaiqr.cli.lint import lint
from thaiqr.cli.listening import listen
from thaiqr.cli.money_out import balance, banks, refund, withdraw
from thaiqr.cli.output import show_any_character
from thaiqr.cli.triggers import trigger

ORDER = [
    "qr", "payments", "refund", "withdraw", "balance", "settlements", "banks", "webhooks", "listen",
    "trigger", "requests", "lint", "configure",
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
) -> None:
    """Thai QR Payments on the command line.

    The key and the service come from THAIQR_API_KEY and THAIQR_BASE_URL, or from a profile (`thaiqr
    configure`).
    """
    show_any_character()


app.add_typer(qr.app, name="qr")
app.add_typer(payments.app, name="payments")
app.command()(refund)
app.command()(withdraw)
app.command()(balance)
app.add_typer(settlements.app, name="settlements")
app.command()(banks)
app.add_typer(hooks.app, name="webhooks")
app.command()(listen)
app.command()(trigger)
app.add_typer(request_log.app, name="requests")
app.command()(lint)
app.command()(configure)
