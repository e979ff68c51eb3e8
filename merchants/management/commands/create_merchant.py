from typing import Any

from django.core.management.base import CommandParser

from core import clock
from merchants import command_output, services
from merchants.command_output import MerchantCommand
from merchants.models import LateMoneyPolicy, Mode


class Command(MerchantCommand):
    help = "Create a merchant and its first secret key, which is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="What the shop is called.")
        parser.add_argument("--mode", required=True, choices=Mode.values)
        parser.add_argument(
            "--late-money",
            choices=LateMoneyPolicy.values,
            default=LateMoneyPolicy.REVIEW.value,
            help="What happens to a payment after the expiry of its code. Default: review, by staff.",
        )
        command_output.add_key_options(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        given = {name: options[name] for name in ("name", "mode", "late_money", "scopes", "networks")}
        merchant, secret = services.create_merchant(now=clock.now(), **given)
        return command_output.format_key(merchant.keys.get(), secret, as_json=options["json"])
