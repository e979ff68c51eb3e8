from typing import Any

from django.core.management.base import CommandParser

from core import clock
from merchants import command_output, services
from merchants.command_output import MerchantCommand


class Command(MerchantCommand):
    help = "Revoke a key at once, by its id (key_...) or the 8 characters after tq_test_ or tq_live_."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key_id")
        command_output.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        key = services.revoke_key(key_id=options["key_id"], now=clock.now())
        return command_output.format_output(
            {"key_id": key.id, "revoked_at": clock.iso_or_none(key.revoked_at)}, as_json=options["json"]
        )
