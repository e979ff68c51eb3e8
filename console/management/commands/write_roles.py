from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from console.people import roles

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "roles.md"
TABLE_BEGINS = "## Who may do what\n\n"
OF_SHOPS = "\n## What the people of a merchant may do\n\n"


class Command(BaseCommand):
    help = "Write the tables of docs/roles.md anew from console/people/sections.toml."

    def handle(self, *args: Any, **options: Any) -> str:
        DOCUMENT.write_text(written())
        return str(DOCUMENT)


def written() -> str:
    """Return the document with the tables of now."""
    begin = DOCUMENT.read_text().partition(TABLE_BEGINS)[0]
    return begin + TABLE_BEGINS + roles.table() + OF_SHOPS + roles.shop_table()
