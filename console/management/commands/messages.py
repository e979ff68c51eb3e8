from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.core.management.commands import makemessages

from console import api_texts, bank_texts, django_texts, labels, roles
from reconciliation.statements import reasons
from reconciliation.statements.table_format import COLUMNS

NOT_FOR_STAFF = (".venv", "tests", "bench", "node_modules")


class Collector(makemessages.Command):
    # A guess from a similar text would be shown to staff.
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]


class Command(BaseCommand):
    help = "Collect the texts that staff see into locale/th, and compile the translations."

    def handle(self, *args: Any, **options: Any) -> None:
        # The collector reads files, so texts that are in no call of gettext are in one meanwhile.
        collected = settings.BASE_DIR / "console" / "label_texts.py"
        texts = (
            *labels.texts(),
            *roles.texts(),
            *django_texts.TEXTS,
            *api_texts.texts(),
            *bank_texts.texts(),
            *reasons.TEXTS,
            *(column["label"] for column in COLUMNS.values()),
        )
        lines = [f"gettext({text!r})\n" for text in texts]
        lines += [f"ngettext({one!r}, {many!r}, 1)\n" for one, many in django_texts.PLURALS]
        try:
            collected.write_text("".join(lines))
            ignored = [part for name in NOT_FOR_STAFF for part in ("-i", name)]
            call_command(Collector(), "-l", "th", "--no-location", "--no-wrap", "--no-obsolete", *ignored)
        finally:
            collected.unlink()
        call_command("compilemessages", "-l", "th", "-i", ".venv")
