from typing import Any

from django.core.management.base import CommandError, CommandParser

from core import clock
from merchants import command_output, services
from merchants.command_output import MerchantCommand


class Command(MerchantCommand):
    help = "Issue a new key in the place of an old one, which works on for the overlap."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key_id")
        parser.add_argument(
            "--overlap-hours",
            type=int,
            default=services.DEFAULT_OVERLAP_HOURS,
            help="0 to 168; 24 unless given.",
        )
        command_output.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            key, secret = services.roll_key(
                key_id=options["key_id"], overlap_hours=options["overlap_hours"], now=clock.now()
            )
        except ValueError as error:
            raise CommandError(str(error)) from None
        return command_output.format_key(key, secret, as_json=options["json"])
