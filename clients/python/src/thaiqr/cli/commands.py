"""Commands that call one method of the client. Their options are the parameters of the method."""

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer

from thaiqr.calls import Blocking
from thaiqr.choices import EventType
from thaiqr.cli import amounts
from thaiqr.cli.amounts import Baht, Satang
from thaiqr.cli.metadata import Metadata, parse_metadata
from thaiqr.cli.output import columns
from thaiqr.cli.session import AsJson, Key, Limit, Profile, ask, group, opened
from thaiqr.paging import Pages
from thaiqr.resources import Resources

EVENTS: tuple[str, ...] = typing.get_args(EventType)
API: Resources[Blocking] = Resources(cast(Any, None))
PAYMENT = (
    "payment_id", "status", "amount_display", "reference", "description", "created_at", "completed_at",
    "expires_at", "amount_received", "amount_refunded", "fee", "fee_vat", "net", "hold", "failure_code",
    "qr_code_id", "settlement_id", "bank_reference", "metadata",
)  # fmt: skip
DELIVERY = "delivery_id event event_id state created_at next_attempt_at finished_at"


@dataclass(frozen=True)
class Command:
    """A command of a group.

    shown: the columns of a list, or the fields of an object if not all. asks: a question before money moves.
    """

    method: str
    shown: str = ""
    name: str = ""
    help: str = ""
    asks: str = ""


GROUPS: dict[str, tuple[str, tuple[Command, ...]]] = {
    "qr": (
        "Create, show and end QR codes.",
        (
            Command("qr_codes.list", "qr_code_id status amount_display reference expires_at"),
            Command("qr_codes.expire", "qr_code_id payment_id status amount_display reference expires_at"),
        ),
    ),
    "payments": (
        "Charge cards; list, read and watch payments.",
        (
            Command("payments.create", " ".join(PAYMENT)),
            Command("payments.list", "payment_id status amount_display reference created_at"),
            Command("payments.get", " ".join(PAYMENT)),
            Command("payments.lift_hold", " ".join(PAYMENT)),
        ),
    ),
    "exceptions": (
        "Decide about money that did not fit a payment.",
        (
            Command("payments.list_exceptions", "exception_id status reason amount_display", "list"),
            Command("payments.accept_exception", name="accept", asks="Accept {exception_id} as the payment?"),
            Command("payments.return_exception", name="return", asks="Return {exception_id} to its payer?"),
        ),
    ),
    "payment-links": (
        "Make pages on which customers pay.",
        (
            Command(
                "payment_links.create",
                help="Make a page over an amount, or over one that the customer chooses within limits.",
            ),
            Command("payment_links.list", "payment_link_id status amount_display payments expires_at"),
            Command(
                "payment_links.get", help="Show a link. `payments list --payment-link` has its payments."
            ),
            Command("payment_links.deactivate"),
        ),
    ),
    "refunds": (
        "Follow and cancel refunds.",
        (
            Command("refunds.list", "refund_id status amount_display created_at"),
            Command("refunds.get"),
            Command("refunds.cancel"),
        ),
    ),
    "withdrawals": (
        "Follow and cancel withdrawals.",
        (
            Command("withdrawals.list", "withdrawal_id status amount_display reference created_at"),
            Command("withdrawals.get"),
            Command("withdrawals.cancel"),
        ),
    ),
    "settlements": (
        "List and read what acquirers transfer for card payments.",
        (
            Command("settlements.list", "settlement_id status net_display payments arrived_at"),
            Command(
                "settlements.get", help="Show a settlement. `payments list --settlement` has its payments."
            ),
        ),
    ),
    "events": (
        "List, follow and resend events.",
        (Command("events.list", "event_id event timestamp"), Command("events.get")),
    ),
    "destinations": (
        "Manage LINE chats and email addresses that get messages.",
        (
            Command("destinations.list", "destination_id status type to"),
            Command("destinations.get"),
            Command("destinations.create"),
            Command("destinations.test", DELIVERY),
            Command("destinations.delete"),
        ),
    ),
    "webhooks": (
        "Manage the endpoints that receive events.",
        (
            Command("webhooks.list", "webhook_id status url"),
            Command("webhooks.test", DELIVERY),
            Command("webhooks.rotate_secret", name="rotate"),
            Command("webhooks.deliveries", "delivery_id event state created_at next_attempt_at"),
            Command("webhooks.redeliver", DELIVERY),
            Command("webhooks.delete"),
        ),
    ),
    "requests": ("Read the log of your own requests.", (Command("requests.get"),)),
    "clock": (
        "Advance the time of a test merchant.",
        (
            Command("sandbox.advance_clock", name="advance"),
            Command("sandbox.get_clock", name="get"),
            Command("sandbox.reset_clock", name="reset"),
        ),
    ),
}
FLAGS = {
    "bank_code": "bank", "bank_account": "account", "account_name": "name", "start_date": "since",
    "end_date": "until", "advance_minutes": "minutes", "advance_seconds": "seconds",
}  # fmt: skip
HELP = {
    "event": "One of the event types.",
    "start_date": "From this date or time, such as 2026-11-21.",
    "end_date": "Until this date, included, or until this time.",
    "timezone": "Of the dates.",
    "token_id": "The token of a card, such as tok_test_visa.",
    "reference": "Your own number of it.",
    "note": "A note for yourself.",
    "max_payments": "How many payments; 0 is any number.",
    "expires_at": "When the page ends, such as 2026-12-31T23:59+07:00.",
    "expiry_minutes": "Minutes to pay a code.",
    "to": "The id of a LINE chat, or an email address.",
    "token": "Of your LINE channel.",
    "quiet_hours": "Without messages, such as 22:00-07:00.",
    "part": "All of it, or only the excess of an over-payment.",
}
Events = Annotated[
    list[str] | None, typer.Option("--event", "-e", help="An event type; may be repeated. All by default.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money moves.")]
# Parameters whose options are not of the same name and type. `after` is what pages use.
OPTIONS: dict[str, dict[str, Any]] = {
    "amount": {"amount": Baht, "satang": Satang},
    "metadata": {"metadata": Metadata},
    "events": {"events": Events},
    "idempotency_key": {"idempotency_key": Key},
    "currency": {},
    "after": {},
    "page_size": {"limit": Limit},
}
DEFAULTS = {"limit": 20, "timezone": "Asia/Bangkok"}


def groups() -> dict[str, typer.Typer]:
    """The groups of commands, by their names."""
    made = {}
    for name, (help, commands) in GROUPS.items():
        made[name] = group(help)
        for each in commands:
            made[name].command(each.name or each.method.rpartition(".")[2])(_function(each))
    return made


def _function(command: Command) -> Callable[..., None]:
    """The function of a command, with a parameter for each of its options."""
    resource, _, name = command.method.partition(".")
    method = getattr(type(getattr(API, resource)), name).build
    described = list(inspect.signature(method).parameters.values())[1:]

    def run(*, json: bool = False, profile: str | None = None, yes: bool = True, **given: Any) -> None:
        with opened(profile, json=json, tells_key="idempotency_key" in given) as session:
            limit = given.pop("limit", 0)
            arguments = _arguments(given, described)
            if command.asks:
                ask(session.output, command.asks.format(**given), yes)
            if limit:
                arguments["page_size"] = min(limit, 100)
            result = getattr(getattr(session.client, resource), name)(**arguments)
            if isinstance(result, Pages):
                session.output.listing(result, columns(command.shown), limit)
            elif result is None:
                session.output.deleted(given)
            else:
                session.output.show(result, command.shown.split())

    options = [option for each in described for option in _options(each)]
    options += [_parameter("yes", Yes, False)] * bool(command.asks)
    options += [_parameter("json", AsJson, False), _parameter("profile", Profile, None)]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in options}
    run.__doc__ = command.help or _first_sentence(method)
    return run


def _first_sentence(method: Callable[..., Any]) -> str:
    return (method.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".") + "."


def _options(described: inspect.Parameter) -> list[inspect.Parameter]:
    """The options for one parameter of a method. An id in the path is an argument."""
    name = described.name
    if name in OPTIONS:
        return [_parameter(option, kind, DEFAULTS.get(option)) for option, kind in OPTIONS[name].items()]
    if described.kind is not inspect.Parameter.KEYWORD_ONLY:
        return [_parameter(name, Annotated[str, typer.Argument(metavar=name.upper())])]
    flag = FLAGS.get(name, name.removesuffix("_id")).replace("_", "-")
    values = [value for each in _alternatives(described.annotation) for value in typing.get_args(each)]
    help = HELP.get(name) or (f"{', '.join(values[:-1])} or {values[-1]}." if values else None)
    kind = int if int in _alternatives(described.annotation) and not name.startswith("amount_") else str
    option = typer.Option(f"--{flag}", help=help)
    default = DEFAULTS.get(name, described.default)
    return [_parameter(name, Annotated[cast(Any, kind | None if default is None else kind), option], default)]


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types of `int | None`, and the `Literal` itself of one."""
    is_choice = typing.get_origin(annotation) is typing.Literal
    return (annotation,) if is_choice else typing.get_args(annotation) or (annotation,)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _arguments(given: dict[str, Any], described: list[inspect.Parameter]) -> dict[str, Any]:
    """What was given as the arguments of the method. Raises ValueError."""
    arguments = dict(given)
    if "satang" in given:
        needed = any(each.name == "amount" and each.default is each.empty for each in described)
        read = amounts.satang_of if needed else amounts.optional_satang
        arguments["amount"] = read(given["amount"], arguments.pop("satang"))
    for name in {"amount_min", "amount_max"} & given.keys():
        arguments[name] = amounts.optional_satang(given[name], None, f"--{name.replace('_', '-')}")
    if "metadata" in given:
        arguments["metadata"] = parse_metadata(given["metadata"])
    if "events" in given:
        arguments["events"] = given["events"] or EVENTS
    if given.get("max_payments") == 0:
        arguments["max_payments"] = None
    if "timezone" in given and not (given["start_date"] or given["end_date"]):
        arguments["timezone"] = None
    return arguments
