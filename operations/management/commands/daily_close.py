import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from core.commands import read_day
from operations.audit.daily_close import closing, signing
from operations.audit.daily_close.closing import NotClosable
from operations.audit.daily_close.signing import NoSigningKey
from operations.models import NightlyJob
from operations.nightly import runs


class Command(BaseCommand):
    help = (
        "Close all days, in Bangkok time, that have ended since the newest close: write down their totals, "
        "signed. Run it every night. --check verifies a downloaded file without the database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--first", type=read_day, metavar="DATE", help="The first day; yesterday unless given."
        )
        parser.add_argument("--public-key", action="store_true", help="Print the key that verifies closes.")
        parser.add_argument("--check", metavar="FILE", help="Verify a file. Needs --key.")
        parser.add_argument("--key", help="The public key, from a safe source and not from the file.")

    def handle(self, *args: Any, **options: Any) -> str | None:
        try:
            if options["check"]:
                return _check(options["check"], options["key"])
            if options["public_key"]:
                return signing.public_key()
            with runs.by_command(NightlyJob.DAILY_CLOSE) as run:
                made = None
                for made in closing.close_due(clock.now, first=options["first"]):
                    key = signing.fingerprint(made.public_key)
                    self.stdout.write(f"{made.day}: close {made.number}, hash {made.hash}, key {key}")
                if made is None:
                    self.stdout.write("No day to close: each that ended over ten minutes ago is closed.")
                run.differences = 0
        except (NotClosable, NoSigningKey) as error:
            raise CommandError(str(error)) from None
        return None


def _check(path: str, key: str | None) -> str:
    if not key:
        raise CommandError("--check needs --key: the public key that `daily_close --public-key` printed.")
    try:
        given = json.loads(Path(path).read_text())
        body, signature = given["body"], given["signature"]
        content = json.loads(body)
        period = content.get("day") or content["month"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CommandError(f"{path} is not a file of a close.") from None
    if not signing.is_valid(body, signature, key):
        raise CommandError(f"{path} was changed, or is signed with another key.")
    return (
        f"{period}: the signature is right. The hash is {closing.hash_of(body)}. "
        f"The fingerprint of the key is {signing.fingerprint(key)}."
    )
