"""The committed reference: the OpenAPI document, and the table of error codes."""

from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from apidocs.error_responses import CODES_OF_COMMANDS
from apidocs.generator import ApiSchemaGenerator
from core.errors import CATALOGUE

FOLDER = Path(settings.BASE_DIR) / "docs"
HEADING = """\
# Errors

Written by `manage.py write_reference` from the catalogue in the code; `/openapi.json` says which operation
answers which. Every error looks like this; `param` names the field at fault, where there is one, and
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
    generator = ApiSchemaGenerator()  # type: ignore[no-untyped-call]
    return generator.get_schema(request=None, public=True)


def error_table() -> str:
    """The catalogue as Markdown, by status and code."""
    errors = sorted(CATALOGUE.values(), key=lambda error_type: (error_type.status, error_type.code))
    rows = [
        f"| {error_type.status} | `{error_type.code}` | `{error_type.type}` | {error_type.message} |\n"
        for error_type in errors
        if error_type.code not in CODES_OF_COMMANDS
    ]
    return HEADING + "".join(rows)


def reference_files() -> dict[Path, str]:
    """The content of the committed files, by path."""
    return {
        FOLDER / "openapi.json": orjson.dumps(document(), option=orjson.OPT_INDENT_2).decode() + "\n",
        FOLDER / "errors.md": error_table(),
    }
