"""Options, refusals and output of the merchant commands: lines for people, or a JSON object for programs."""

import json
from argparse import Action, ArgumentError, ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from core import clock
from core.errors import ApiError
from core.http.scopes import Scope
from merchants.models import ApiKey

Values = dict[str, str | list[str] | None]


class MerchantCommand(BaseCommand):
    """A command that a service may refuse."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except ApiError as refusal:
            raise CommandError(refusal.text) from None
        except ValidationError as refusal:
            # The first wrong field, named as its argument.
            field, messages = next(iter(refusal.message_dict.items()))
            name = "merchant_id" if field == "merchant" else f"--{field.replace('_', '-')}"
            raise CommandError(f"{name}: {' '.join(messages)}") from None


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")


class _SplitValues(Action):
    """Values separated by spaces or commas."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        parts = [part for value in values for part in value.split(",") if part]
        if not parts:  # an empty shell variable must not allow every network
            raise ArgumentError(self, "give at least one")
        setattr(namespace, self.dest, parts)


def add_key_options(parser: ArgumentParser) -> None:
    """Add the options for scopes and networks of a new key, and for JSON."""
    add_json_option(parser)
    parser.add_argument(
        "--scopes",
        nargs="+",
        action=_SplitValues,
        default=Scope.values,
        metavar="SCOPE",
        help=f"What the key may do: {', '.join(Scope.values)}. Default: all.",
    )
    parser.add_argument(
        "--networks",
        nargs="+",
        action=_SplitValues,
        default=[],
        metavar="CIDR",
        help="Networks from which the key may be used, such as 203.0.113.0/24. Default: any.",
    )


def format_key(key: ApiKey, secret: str, *, as_json: bool) -> str:
    """A new key, with its secret."""
    values: Values = {
        "merchant_id": key.merchant_id,
        "key_id": key.id,
        "secret_key": secret,
        "scopes": key.scopes,
        "networks": key.networks,
        "expires_at": clock.iso_or_none(key.expires_at),
    }
    return format_output(values, as_json=as_json)


def format_output(values: Values, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(values)
    width = max(map(len, values))
    return "\n".join(
        f"{name:<{width}}  {(' '.join(value) or 'any') if isinstance(value, list) else value}"
        for name, value in values.items()
        if value is not None
    )
