"""The reference: the OpenAPI document, what is made of it, and the table of error codes."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import yaml
from django.conf import settings

from apidocs import llms_text, postman
from apidocs.error_responses import CODES_OF_COMMANDS
from apidocs.generator import ApiSchemaGenerator
from core import failures
from core.errors import CATALOGUE, MESSAGES
from payments.match_results import HELD

FOLDER = Path(settings.BASE_DIR) / "docs"
WIDTH = 125  # as other documents
HEADING = """\
# Errors

Written by `manage.py write_reference` from the catalogue in the code; `/openapi.json` says which operation
answers which. Every error looks like this:

```json
{"error": {"code": "invalid_amount", "message": "Amount must be between 1 and 2000000 THB",
           "type": "validation_error", "param": "amount",
           "detail": "is out of range: 100 to 200000000 satang; received 99"}}
```

- `param` names the field or the query parameter at fault, where there is one.
- `detail` says which rule the field breaks. Compare `code`, and show `message` and `detail` to people.
- `request_id` comes with every 5xx.
- `{received}` is the value as JSON, or its kind and length if it is long or may be personal: names, account
  numbers, references and secrets are not repeated.
- A code with several rows has a message for each case.

| Status | Code | Type | Message |
|---|---|---|---|
"""
FAILURE_HEADING = """
## Failure codes

`failure_code` says why a payment, a refund or a withdrawal failed. New codes can follow. It stays failed: to
try again, create a new one with a new `Idempotency-Key`. *Again* says whether the same may succeed then, with
nothing changed.

| Of | Code | What happened | Again | What to do |
|---|---|---|---|---|
"""
EXCEPTION_HEADING = """
## Exceptions

Money that does not fit its payment is held until you or the operator decide. `exceptions` of the payment has
its `reason`. `unmatched` money belongs to no payment; one that it may be for says so in `unmatched_money`.

| Reason | Why it is held | What to do |
|---|---|---|
"""
FAILURES = {
    "payments": failures.OF_PAYMENTS,
    "refunds": failures.OF_REFUNDS,
    "withdrawals": failures.OF_WITHDRAWALS,
}


def document() -> dict[str, Any]:
    """The whole API as OpenAPI 3.1."""
    generator = ApiSchemaGenerator()  # type: ignore[no-untyped-call]
    return generator.get_schema(request=None, public=True)


def error_table() -> str:
    """The catalogues as Markdown: errors by status and code, failure codes, reasons of exceptions."""
    codes = sorted(CATALOGUE, key=lambda code: (CATALOGUE[code].status, code))
    rows = [
        f"| {error_type.status} | `{code}` | `{error_type.type}` | {error_type.message} |\n"
        for code in codes
        if code not in CODES_OF_COMMANDS
        for error_type in MESSAGES[code]
    ]
    reasons = [
        f"| {of} | `{code}` | {failure.words} | "
        f"{'yes' if failure.is_retryable else 'no'} | {failure.advice} |\n"
        for of, found in FAILURES.items()
        for code, failure in found.items()
    ]
    held = [f"| `{result}` | {money.meaning} | {money.advice} |\n" for result, money in HELD.items()]
    return "".join([HEADING, *rows, FAILURE_HEADING, *reasons, EXCEPTION_HEADING, *held])


def published() -> dict[str, str]:
    """The content of the files that are served, by name."""
    whole = document()
    return {
        "openapi.json": as_json(whole),
        "openapi.yaml": as_yaml(whole),
        "postman.json": as_json(postman.collection(whole)),
        "llms.txt": llms_text.text(whole),
    }


def reference_files() -> dict[Path, str]:
    """The content of the committed files, by path. The other forms say what the JSON document says."""
    served = published()
    texts = {name: served[name] for name in ("openapi.json", "llms.txt")} | {"errors.md": error_table()}
    return {FOLDER / name: text for name, text in texts.items()}


def as_json(value: dict[str, Any]) -> str:
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
    _Dumper.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


def as_yaml(value: dict[str, Any]) -> str:
    """YAML 1.2 that readers of YAML 1.1 read in the same way."""
    plain = orjson.loads(orjson.dumps(value))  # without enums, and without parts that YAML would refer to
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
