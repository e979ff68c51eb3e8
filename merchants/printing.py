"""What the key commands print: lines for people, one JSON object for programs."""

import json
from argparse import ArgumentParser


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")


def report(values: dict[str, str | None], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(values)
    width = max(map(len, values))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in values.items() if value is not None)
