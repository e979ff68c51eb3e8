"""The committed reference: the OpenAPI document, and the table of error codes."""

from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from console.refusals import OF_COMMANDS
from console.schema import Generator
from core.errors import CATALOGUE

FOLDER = Path(settings.BASE_DIR) / "docs"
HEADING = """\
# Errors

Written by `manage.py write_reference` from the catalogue in the code; `/openapi.json` says which operation
answers which. Every refusal looks like this; `param` names the field at fault, where there is one, and
`request_id` comes with every 5xx:

```json
{"error": {"code": "invalid_amount", "message": "Amount must be between 1 and 2000000 THB",
           "type": "validation_error", "param": "amount"}}
```

| Status | Code | Type | Message |
|---|---|---|---|
"""


def document() -> dict[str, Any]:
    """The whole API as OpenAPI 3.1."""
    generator = Generator()  # type: ignore[no-untyped-call]
    return generator.get_schema(request=None, public=True)


def error_table() -> str:
    """The catalogue as Markdown, by status and code."""
    kinds = sorted(CATALOGUE.values(), key=lambda kind: (kind.status, kind.code))
    rows = [
        f"| {kind.status} | `{kind.code}` | `{kind.type}` | {kind.message} |\n"
        for kind in kinds
        if kind.code not in OF_COMMANDS
    ]
    return HEADING + "".join(rows)


def files() -> dict[Path, str]:
    """What the committed files have to hold, by path."""
    return {
        FOLDER / "openapi.json": orjson.dumps(document(), option=orjson.OPT_INDENT_2).decode() + "\n",
        FOLDER / "errors.md": error_table(),
    }
