"""The reference: the OpenAPI document, what is made of it, and the table of error codes."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import yaml
from django.conf import settings
from django.template.loader import render_to_string

from apidocs import postman
from apidocs.components import Json
from apidocs.error_responses import CODES_OF_COMMANDS
from apidocs.generator import ApiSchemaGenerator
from apidocs.guide.pages import for_merchants
from core import failures
from core.errors import CATALOGUE, MESSAGES
from core.http.openapi import Tag
from payments.match_results import HELD

FOLDER = Path(settings.BASE_DIR) / "docs"
WIDTH = 125  # as other documents


def document() -> Json:
    """The whole API as OpenAPI 3.1."""
    generator = ApiSchemaGenerator()  # type: ignore[no-untyped-call]
    return generator.get_schema(request=None, public=True)


def error_table() -> str:
    """The catalogues as Markdown: errors by status and code, failure codes, reasons of exceptions."""
    codes = sorted(CATALOGUE.keys() - CODES_OF_COMMANDS, key=lambda code: (CATALOGUE[code].status, code))
    errors = [(each.status, code, each.type, each.message) for code in codes for each in MESSAGES[code]]
    failed = failures.OF_PAYMENTS, failures.OF_REFUNDS, failures.OF_WITHDRAWALS
    context = {
        "errors": errors,
        "failures": zip(("payments", "refunds", "withdrawals"), failed, strict=True),
        "held": [(result.value, money) for result, money in HELD.items()],
    }
    return render_to_string("reference/errors.txt", context)


def groups(document: Json) -> list[tuple[Json, list[tuple[str, str, Json]]]]:
    """The tags with their operations as method, path and description. Banks sign what they call."""
    operations = [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "servers"
    ]
    return [
        (tag, [each for each in operations if tag["name"] in each[2]["tags"]])
        for tag in document["tags"]
        if tag["name"] != Tag.BANKS
    ]


def published() -> dict[str, str]:
    """The content of the files that are served, by name."""
    whole = document()
    found = groups(whole)
    page = {"info": whole["info"], "guides": for_merchants(), "groups": found}
    return {
        "openapi.json": as_json(whole),
        "openapi.yaml": as_yaml(whole),
        "postman.json": as_json(postman.collection(whole, found)),
        "llms.txt": render_to_string("reference/llms.txt", page),
    }


def reference_files() -> dict[Path, str]:
    """The content of the committed files, by path. The other forms say what the JSON document says."""
    served = published()
    texts = {name: served[name] for name in ("openapi.json", "llms.txt")} | {"errors.md": error_table()}
    return {FOLDER / name: text for name, text in texts.items()}


def as_json(value: Json) -> str:
    """JSON in which each object or list that fits within WIDTH stands on one line."""
    return _laid_out(orjson.loads(orjson.dumps(value))) + "\n"


def _laid_out(value: Any, margin: str = "", before: int = 0) -> str:
    """A value that begins `before` characters into its line; its further lines have the margin."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or before + len(line) < WIDTH:  # a comma may follow
        return line
    inner = margin + "  "
    if isinstance(value, dict):
        parts = [(f"{inner}{json.dumps(name, ensure_ascii=False)}: ", item) for name, item in value.items()]
    else:
        parts = [(inner, item) for item in value]
    rows = [start + _laid_out(item, inner, len(start)) for start, item in parts]
    return f"{line[0]}\n" + ",\n".join(rows) + f"\n{margin}{line[-1]}"


class _Dumper(yaml.CSafeDumper):
    """Quotes texts that a reader of YAML 1.1 or of YAML 1.2 would take for something else."""


# PyYAML knows YAML 1.1 without `y` and `n`. In YAML 1.2 (section 10.3.2), 008 is the number 8.
_OTHER_SCALARS = {
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    "bool": ("[yYnN]", "yYnN"),
}
for _name, (_pattern, _first) in _OTHER_SCALARS.items():
    _regexp = re.compile(rf"^(?:{_pattern})$")
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _regexp, list(_first))


def as_yaml(value: Json) -> str:
    """YAML 1.2 that readers of YAML 1.1 read in the same way."""
    plain = orjson.loads(orjson.dumps(value))  # without enums, and without parts that YAML would refer to
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
