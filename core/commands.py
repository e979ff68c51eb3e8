"""Management commands that write sealed data."""

from typing import Any

from django.core.management.base import BaseCommand
from django.db import DEFAULT_DB_ALIAS


class SealingCommand(BaseCommand):
    """Refuse to run where a server refuses to start, such as with keys that do not open the database."""

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        """Without a database named Django leaves out the checks that ask it."""
        return super().get_check_kwargs(options) | {"databases": [DEFAULT_DB_ALIAS]}
