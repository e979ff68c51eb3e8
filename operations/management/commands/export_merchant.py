from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core import clock
from core.commands import SealingCommand
from merchants.models import Merchant
from operations.moving import exporting
from operations.moving.file import Unusable


class Command(SealingCommand):
    help = (
        "Write all rows of a merchant to a sealed file for another instance, and leave the books to it: "
        "nothing is credited or sent here any more. Prints the key of the file once. See "
        "docs/move-a-merchant.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("merchant_id")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("file", nargs="?", type=Path, help="A new file.")
        what.add_argument(
            "--cancel", action="store_true", help="Keep the merchant here. Destroy the file first."
        )

    def handle(self, *args: Any, **options: Any) -> str:
        merchant_id, path = options["merchant_id"], options["file"]
        try:
            if options["cancel"]:
                exporting.stay(merchant_id)
                return f"{merchant_id} stays here."
            key, digest = exporting.export(merchant_id, path, now=clock.now())
        except Merchant.DoesNotExist:
            raise CommandError(f"No merchant {merchant_id}.") from None
        except (Unusable, OSError) as refusal:
            raise CommandError(f"{refusal} Nothing is changed.") from None
        return f"{merchant_id} has left.\nfile:    {path}\nSHA-256: {digest}\nkey:     {key}"
