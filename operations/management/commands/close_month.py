import json
from argparse import ArgumentTypeError
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock, money
from core.commands import read_day
from operations.audit import runner
from operations.audit.daily_close import signing
from operations.audit.daily_close.closing import NotClosable
from operations.audit.daily_close.signing import NoSigningKey
from operations.audit.month_close import closing, month_page
from operations.audit.month_close.closing import Books


class Command(BaseCommand):
    help = (
        "Show where the money of a month, in Bangkok time, belongs, and what somebody must answer. Fails "
        "while something is open. --sign closes the month if nothing is, once and in the order of months."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("month", type=_read_month, metavar="MONTH", help="Such as 2026-11.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        parser.add_argument("--sign", action="store_true", help="Close the month.")
        parser.add_argument("--sandbox", action="store_true", help="Show money of the sandbox bank instead.")

    def handle(self, *args: Any, **options: Any) -> None:
        month, now, is_sandbox = options["month"], clock.now(), options["sandbox"]
        if options["sign"] and is_sandbox:
            raise CommandError("Money of the sandbox bank is not real: its months are not closed.")
        try:
            closing.check(month, now, is_sandbox=is_sandbox)
            with runner.snapshot():
                books = closing.read(month, now, is_sandbox=is_sandbox)
            self._show(books, as_json=options["json"])
            if books.open:
                raise NotClosable(books.refusal)
            if options["sign"]:
                made = closing.close(month, now=now)
                key = signing.fingerprint(made.public_key)
                self.stderr.write(f"{made}: close {made.number}, hash {made.hash}, key {key}")
        except (NotClosable, NoSigningKey) as error:
            raise CommandError(str(error)) from None

    def _show(self, books: Books, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(books.as_json()))
            return
        body = books.as_json()
        for name, lines in month_page.tables(body):
            self.stdout.write(name)
            for label, amount in lines:
                self.stdout.write(f"  {label:<40}{money.display(amount):>24}")
        for each in body["statement_lines"]:
            self._line("Statement lines", each["category"], each["count"], each["bank"], each["amount"])
        for title, found in (("Open", books.open), ("On the way", books.on_the_way)):
            for item in found:
                party = f"{item.party or 'no owner'} since {clock.iso(item.since)}"
                self._line(title, item.label, item.subject or item.count, party, item.amount)
        for each in body["corrections"]:
            self._line(f"Correction of {each['month']}", each["type"], each["subject"], "", each["amount"])
        self.stdout.write(f"Remainder: {money.display(books.remainder)}")

    def _line(self, title: str, what: str, subject: str | int, where: str, amount: int | None) -> None:
        satang = "unknown amount" if amount is None else money.display(amount)
        self.stdout.write(f"{title}: {what}: {subject}, {where}, {satang}".replace(", ,", ","))


def _read_month(text: str) -> date:
    try:
        return read_day(f"{text}-01")
    except ArgumentTypeError:
        raise ArgumentTypeError(f"{text!r} is not a month such as 2026-11") from None
