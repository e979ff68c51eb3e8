from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.commands import read_day
from operations.audit import runner
from operations.models import ProofDay
from operations.proof import recount


class Command(BaseCommand):
    help = (
        "Compute a signed day of a merchant's proof page again, from the rows one by one. Prints each figure "
        "that differs, and then fails. It needs the attempts of webhooks (WEBHOOK_ATTEMPT_RETENTION_DAYS)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("merchant_id")
        parser.add_argument("--day", type=read_day, metavar="DATE", help="The newest day unless given.")

    def handle(self, *args: Any, **options: Any) -> str:
        wanted = {name: options[name] for name in ("merchant_id", "day") if options[name]}
        proof = ProofDay.objects.filter(**wanted).select_related("close").order_by("day").last()
        if proof is None:
            raise CommandError("That merchant has no such day. The nightly close writes them.")
        with runner.snapshot():
            found = list(recount.differences(proof))
        if found:
            raise CommandError("\n".join([f"{proof.day}: {len(found)} figures differ.", *found]))
        return f"{proof.day}: the rows say what was signed.\n{proof.body}"
