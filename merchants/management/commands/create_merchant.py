from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from merchants import command_output, services
from merchants.models import LateMoneyPolicy, Mode


class Command(BaseCommand):
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
        command_output.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            merchant, secret = services.create_merchant(
                name=options["name"],
                mode=options["mode"],
                late_money=options["late_money"],
                now=clock.now(),
                scopes=options["scopes"],
                networks=options["networks"],
            )
        except ValidationError as error:
            raise CommandError(command_output.validation_message(error)) from None
        key = merchant.keys.get()
        values: command_output.Values = {"merchant_id": merchant.id, "key_id": key.id, "secret_key": secret}
        return command_output.format_output(values | command_output.key_fields(key), as_json=options["json"])
