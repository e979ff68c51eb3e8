from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from console.people import roles

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "roles.md"
TABLE_BEGINS = "## Who may do what\n\n"


class Command(BaseCommand):
    help = "Write the table of docs/roles.md anew from console/people/sections.toml."

    def handle(self, *args: Any, **options: Any) -> str:
        DOCUMENT.write_text(written())
        return str(DOCUMENT)


def written() -> str:
    """Return the document with the table of now."""
    return DOCUMENT.read_text().partition(TABLE_BEGINS)[0] + TABLE_BEGINS + roles.table()
