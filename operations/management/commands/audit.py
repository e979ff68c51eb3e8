import argparse
import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from audit_trail import recording
from audit_trail.acts import Act
from audit_trail.chain import Verification
from audit_trail.models import ChainLink
from core import clock
from core.commands import ProgressBar
from operations.audit import findings, runner
from operations.audit.daily_close import closing
from operations.models import NightlyJob
from operations.nightly import runs


class Command(BaseCommand):
    help = (
        "Prove that accounts, journals, payments, refunds, withdrawals, transfers and events agree, "
        "and that nobody changed the audit trail or a daily close. Prints each difference, and fails if "
        "there is any. The service may run meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--chain-link",
            type=_parse_link,
            metavar="NUMBER:HASH",
            help="A link of the audit trail that an earlier run printed. The chain must still contain it.",
        )
        parser.add_argument(
            "--drill", action="store_true", help="Record a restore drill, which printed the link."
        )

    def handle(self, *args: Any, **options: Any) -> str:
        if options["drill"] and not options["chain_link"]:
            raise CommandError("--drill needs --chain-link: what the audit of the restored copy printed.")
        chain = Verification(options["chain_link"])
        with runs.by_command(NightlyJob.AUDIT) as run, runner.snapshot():
            run.differences = count = self._write_findings(chain)
            for warning in runner.warnings(clock.now()):
                self.stderr.write(warning, self.style.WARNING)
            signers = ", ".join(closing.signers())
        if count:
            raise CommandError(f"The books are wrong. Differences: {count}.")
        if options["drill"]:
            with transaction.atomic():
                recording.write(Act.RESTORE_DRILLED, ChainLink.objects.get(pk=options["chain_link"][0]))
        closes = f"\nThe daily closes are right. They are signed with {signers}" if signers else ""
        return (
            f"The books are right: {len(runner.RULES)} rules hold.\n"
            f"The audit trail is complete. Its newest link: {chain.number}:{chain.hash}{closes}"
        )

    def _write_findings(self, chain: Verification) -> int:
        count, bar = 0, ProgressBar(self.stderr, "audit", lambda: len(runner.RULES))
        for finding in findings.find(chain, on_progress=bar.advance):
            count += 1
            bar.clear()
            self.stdout.write(finding)
        bar.clear()
        return count


def _parse_link(text: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d{1,18}):([0-9a-f]{64})", text)
    if found is None:
        raise argparse.ArgumentTypeError("give it as it was printed, NUMBER:HASH")
    return int(found[1]), found[2]
