import csv
from argparse import FileType
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import money
from transfers.models import UNSUBMITTED_STATES, Transfer

HINT = "record it by record_lost_order (docs/restore.md)"


class Command(BaseCommand):
    help = (
        "Compare a bank's list of the orders that it carried out with ours. The file is CSV: the id of the "
        "order (wd_..., ref_..., rtn_...) and the amount in baht. Prints each order that is missing here or "
        "differs, and then fails."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=FileType("r"), help="- reads standard input.")

    def handle(self, *args: Any, **options: Any) -> str:
        with options["file"] as file:
            orders = dict(_read(file))
        known = {each.pk: each for each in Transfer.objects.filter(pk__in=orders)}
        lines = [line for each in orders.items() if (line := _difference(*each, known.get(each[0])))]
        for line in lines:
            self.stdout.write(line)
        if lines:
            raise CommandError(f"Orders that differ: {len(lines)} of {len(orders)}.")
        return f"All {len(orders)} orders of the bank are here."


def _read(file: Iterable[str]) -> Iterator[tuple[str, int]]:
    for number, row in enumerate(csv.reader(file), 1):
        try:
            order_id, amount = row[0].strip(), money.satang(row[1].strip().replace(",", ""))
        except (IndexError, ValueError):
            if number > 1:  # the first line may have the names of the columns
                raise CommandError(f"Line {number} is not an id and an amount in baht.") from None
            continue
        yield order_id, amount


def _difference(order_id: str, amount: int, transfer: Transfer | None) -> str:
    shown = f"{order_id} {money.display(amount)}"
    if transfer is None:
        return f"missing here: {shown}: {HINT}"
    if transfer.amount != amount:
        return f"another amount here: {shown}: here {money.display(transfer.amount)}, ask the bank"
    if transfer.state in UNSUBMITTED_STATES:
        return f"not sent from here: {shown}: {transfer.state}. In safe mode a worker asks the bank about it"
    return ""
