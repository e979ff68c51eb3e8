from typing import Any

from django.core.management.base import BaseCommand

from apidocs import reference


class Command(BaseCommand):
    help = "Write docs/openapi.json, docs/llms.txt and docs/errors.md anew from the code."

    def handle(self, *args: Any, **options: Any) -> None:
        for path, text in reference.reference_files().items():
            path.write_text(text)
            self.stdout.write(str(path))
