import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock, money
from core.thai import bangkok_days
from merchants.models import Merchant
from operations.audit import runner
from operations.shadow.comparison import Comparison
from operations.shadow.files import FORMS, GatewayFiles
from reconciliation.statements.lines import InvalidStatementFile


class Command(BaseCommand):
    help = (
        "Compare files of another gateway (CSV, or webhooks as lines of JSON) with a month of a merchant. "
        "Prints each payment that is missing or differs, and changes nothing. Exits with 1 if anything "
        "differs, and with 2 if nothing could be compared. See docs/operations.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--gateway", choices=FORMS, required=True)
        parser.add_argument("--merchant", required=True, metavar="mch_...")
        parser.add_argument("--month", default="last-month", help="2026-10, in Bangkok; else the last one.")
        parser.add_argument("--minutes", type=int, default=10, help="How far times may differ (10).")
        parser.add_argument("--reference", default="", help="Where they have your reference, if elsewhere.")
        parser.add_argument("--json", action="store_true", help="Lines of JSON, with satang and seconds.")

    def handle(self, *args: Any, **options: Any) -> None:
        if (month := bangkok_days.between(options["month"], clock.now())) is None:
            raise CommandError("--month is not a month such as 2026-10.", returncode=2)
        if options["minutes"] < 0:
            raise CommandError("--minutes is less than 0.", returncode=2)
        files = GatewayFiles(options["gateway"], options["reference"])
        comparison, count = Comparison(*month, options["minutes"] * 60), 0
        try:
            merchant = Merchant.objects.get(pk=options["merchant"])
            for path in options["files"]:
                comparison.add_theirs(files.read(path))
            if files.lacks_reference:
                raise InvalidStatementFile(f"No file has {options['reference']}.")
        except (Merchant.DoesNotExist, InvalidStatementFile, OSError) as error:
            raise CommandError(f"Nothing is compared. {error}", returncode=2) from None
        with runner.snapshot():
            comparison.add_ours(merchant)
        for row in comparison.report():
            count += not row["kind"].startswith("total")
            self.stdout.write(json.dumps(row) if options["json"] else _line(**row))
        for reason, rows in files.skipped.items():
            self.stderr.write(f"Rows {reason}: {rows}")
        if files.unread:
            self.stderr.write(f"Columns that nothing reads: {', '.join(files.unread)}")
        if count:
            raise CommandError(f"Differences: {count}")


def _line(kind: str, there: int | None, here: int | None, **names: str) -> str:
    formats: dict[str, Callable[[int], str]] = {
        "status": ("not paid", "paid").__getitem__,
        "time": lambda at: clock.iso(datetime.fromtimestamp(at, UTC)),
        "total payments": str,
    }
    shown = formats.get(kind, money.with_code)
    values = ("none" if value is None else shown(value) for value in (there, here))
    return " ".join([f"{kind}:", *filter(None, names.values()), "there {}, here {}".format(*values)])
