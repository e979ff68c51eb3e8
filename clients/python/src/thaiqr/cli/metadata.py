"""`--metadata key=value`, as often as needed."""

from typing import Annotated

import typer

Metadata = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="Your own data; may be repeated.")
]


def parse_metadata(pairs: list[str] | None) -> dict[str, str] | None:
    """The pairs as an object. Raises ValueError."""
    if not pairs:
        return None
    wrong = [pair for pair in pairs if "=" not in pair.lstrip("=")]
    if wrong:
        raise ValueError(f"--metadata {wrong[0]!r} is not KEY=VALUE.")
    return dict(pair.split("=", 1) for pair in pairs)
