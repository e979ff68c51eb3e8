from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.database.roles import APPLICATION, REPORTS, SHOP
from operations.data_protection import database_roles


class Command(BaseCommand):
    help = (
        f"Create the roles {APPLICATION}, {REPORTS} and {SHOP}, and grant them what they need. Run it once "
        "as the owner of the tables; each migration repeats the grants."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--print", action="store_true", help="Print the SQL and change nothing.")

    def handle(self, *args: Any, **options: Any) -> str:
        if options["print"]:
            return ";\n".join(database_roles.statements()) + ";"
        try:
            database_roles.create()
        except database_roles.RolesMissing:
            raise CommandError(
                f"This user may not create roles. As a superuser: {database_roles.HOW_TO_CREATE}"
            ) from None
        database_roles.grant()
        count = len(database_roles.tables())
        return (
            f"{APPLICATION} works on {count} tables, {REPORTS} reads them without secrets, "
            f"{SHOP} reads rows of one merchant.\n"
            f"Make a login for the service: CREATE ROLE web LOGIN PASSWORD '...' IN ROLE {APPLICATION};"
        )
