import sys
from getpass import getpass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import OperationalError

from core.commands import SealingCommand
from operations.moving.file import Unusable
from operations.moving.importing import Importer


class Command(SealingCommand):
    help = (
        "Import a merchant from a file of export_merchant, all or nothing. Other merchants wait meanwhile. "
        "Reads the key of the file from standard input. See docs/move-a-merchant.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> str:
        key = getpass("Key of the file: ") if sys.stdin.isatty() else sys.stdin.readline()
        try:
            merchant_id, signer = Importer().run(options["file"], key.strip())
        except (Unusable, OSError, OperationalError) as refusal:
            raise CommandError(f"{refusal}\nNothing is changed.") from None
        return f"{merchant_id} is here. The books are right. The file is signed with: {signer or 'no key'}"
