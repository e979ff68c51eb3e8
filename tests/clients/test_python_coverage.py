"""The Python client has a method for each operation of merchants, and each field of their objects."""

import ast
import inspect
import sys
import tomllib
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any

import pytest
import thaiqr
from thaiqr import choices, failures, models
from thaiqr.calls import Awaiting, Blocking
from thaiqr.decoding import Model
from thaiqr.resources import Resources

from apidocs.code_samples import METHODS
from core.failures import CATALOGUE
from tests.clients import openapi
from tests.stack import ROOT

SOURCE = ROOT / "clients" / "python"
# A file for `manage.py import_statement`, which only operators of the service run.
LEFT_OUT = {"download_sandbox_bank_statement"}
# The pages of a list use these by themselves. `before` reads backwards. `after_sequence` is `events.follow`.
PAGING = {"limit", "offset", "before", "after_sequence"}
OURS = {"self", "idempotency_key", "page_size"}
SCHEMAS: dict[type[Model], tuple[str, ...]] = {
    models.AccountDigits: ("AccountDigits",),
    models.AdvancedSandboxClock: ("AdvancedClockObject",),
    models.Balance: ("BalanceObject",),
    models.BalanceTransaction: ("BalanceTransactionObject",),
    models.Bank: ("BankObject",),
    models.Card: ("Card",),
    models.ClaimLink: ("ClaimLinkObject",),
    models.ClaimLinkSecret: ("ClaimLinkSecret",),
    models.Delivery: ("DeliveryObject",),
    models.DeliveryAttempt: ("DeliveryAttemptObject",),
    models.EventDestination: ("DestinationObject",),
    models.EndpointHealth: ("HealthObject",),
    models.FullLoggedRequest: ("FullRequestObject",),
    models.LoggedRequest: ("RequestObject",),
    models.MovedRows: ("MovedRows",),
    models.Payer: ("Payer",),
    models.Payment: ("PaymentObject",),
    models.PaymentEventData: ("PaymentEventData", "PaymentFeeEventData", "PaymentExceptionEventData"),
    models.PaymentException: ("PaymentExceptionObject",),
    models.PaymentLink: ("PaymentLinkObject",),
    models.PingData: ("PingData",),
    models.QrCode: ("QrCodeObject",),
    models.Refund: ("RefundObject",),
    models.RefundSummary: ("RefundSummary",),
    models.ReplayResult: ("ReplayResultObject",),
    models.SandboxClock: ("ClockObject",),
    models.SandboxPayment: ("SandboxPaymentObject",),
    models.Settlement: ("SettlementObject",),
    models.Slip: ("SlipObject",),
    models.TimelineEntry: ("TimelineEntry",),
    models.Transaction: ("TransactionObject",),
    models.UnmatchedMoney: ("UnmatchedMoney",),
    models.Webhook: ("WebhookObject",),
    models.WebhookSecret: ("WebhookSecret",),
    models.Withdrawal: ("WithdrawalObject",),
}
EVENT_CLASSES = (
    models.PaymentEvent,
    models.RefundEvent,
    models.SettlementEvent,
    models.WithdrawalEvent,
    models.PingEvent,
)
TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "boolean": (bool,),
    "string": (str,),
    "array": (tuple,),
}


def method(name: str) -> Any:
    resource, _, attribute = name.partition(".")
    return getattr(getattr(Resources[Blocking](NotSent()), resource), attribute)


def test_every_operation_of_merchants_has_a_method() -> None:
    assert METHODS.keys() | LEFT_OUT == openapi.merchant_operations().keys()
    assert not METHODS.keys() & LEFT_OUT


def test_methods_take_every_parameter_and_field_of_their_operation() -> None:
    for operation, name in METHODS.items():
        described = openapi.merchant_operations()[operation]
        arguments = set(inspect.signature(method(name)).parameters)
        assert arguments - OURS == (described.parameters - PAGING) | described.fields
        assert ("idempotency_key" in arguments) == (described.method == "POST")
        assert ("page_size" in arguments) == ("limit" in described.parameters)


def test_following_events_takes_a_sequence() -> None:
    assert set(inspect.signature(method("events.follow")).parameters) == {
        "self", "after_sequence", "event", "page_size",
    }  # fmt: skip


def test_models_have_every_field_of_their_schema() -> None:
    for model, names in SCHEMAS.items():
        described: dict[str, Any] = {}
        for name in names:
            described |= openapi.properties(openapi.SCHEMAS[name])
        own = {field.name: field for field in fields(model) if field.name != "raw"}
        assert set(own) == set(described)
        always = set.intersection(*(set(openapi.SCHEMAS[name]["required"]) for name in names))
        for name, field in own.items():
            is_required = field.default is MISSING
            assert is_required == (name in always and not is_nullable(described[name])), name


def is_nullable(schema: dict[str, Any]) -> bool:
    kinds = [each.get("type") for each in schema.get("oneOf", ())]
    return "null" in (schema.get("type") or "") or "null" in kinds or None in schema.get("enum", ())


def test_fields_of_models_have_the_type_of_their_schema() -> None:
    for model in SCHEMAS:
        described = openapi.properties(openapi.SCHEMAS[SCHEMAS[model][-1]])
        hints = typing.get_type_hints(model)
        for name, schema in described.items():
            kinds = typing.get_args(hints[name]) or (hints[name],)
            if schema.get("format") == "date-time":
                assert datetime in kinds, name
            elif isinstance(schema.get("type"), str) and schema["type"] in TYPES:
                origin = typing.get_origin(hints[name])
                assert set(TYPES[schema["type"]]) & {*kinds, origin}, name


def test_every_model_is_compared_with_a_schema() -> None:
    found = {kind for kind in kinds_of(Model) if not kind.__name__.startswith("_")}
    assert found == {*SCHEMAS, *EVENT_CLASSES, models.UnknownEvent}
    assert {kind.__name__ for kind in found} <= set(models.__all__)


def kinds_of(model: type[Model]) -> Iterator[type[Model]]:
    """All models of the client. Those of tests are not among them."""
    for kind in model.__subclasses__():
        if kind.__module__.startswith("thaiqr."):
            yield kind
            yield from kinds_of(kind)


def test_every_event_type_has_a_class_with_its_data() -> None:
    assert set(models.EVENTS) == set(openapi.DOCUMENT["webhooks"])
    for name, kind in models.EVENTS.items():
        message = openapi.DOCUMENT["webhooks"][name]["post"]["requestBody"]
        data = message["content"]["application/json"]["schema"]["properties"]["data"]["$ref"]
        assert data.rpartition("/")[2] in SCHEMAS[typing.get_type_hints(kind)["data"]], name


@pytest.mark.parametrize(
    ("alias", "schema", "field"),
    [
        (choices.PaymentStatus, "PaymentObject", "status"),
        (choices.TransactionStatus, "TransactionObject", "status"),
        (choices.RefundStatus, "RefundObject", "status"),
        (choices.RefundReason, "RefundRequest", "reason"),
        (choices.ReturnPart, "ReturnRequest", "part"),
        (choices.WithdrawalStatus, "WithdrawalObject", "status"),
        (choices.WebhookStatus, "WebhookChangeRequest", "status"),
        (choices.DeliveryState, "DeliveryObject", "state"),
        (choices.EventType, "WebhookRequest", "events"),
        (choices.Scenario, "SandboxPaymentRequest", "scenario"),
        (choices.BalanceTransactionType, "BalanceTransactionObject", "type"),
    ],
)
def test_choices_are_the_values_of_the_schema(alias: Any, schema: str, field: str) -> None:
    assert set(typing.get_args(alias)) == openapi.values_of(schema, field)


def test_retryable_failures_are_those_of_the_service() -> None:
    assert {code for code, failure in CATALOGUE.items() if failure.is_retryable} == failures.RETRYABLE


def test_both_clients_have_the_same_methods() -> None:
    ours, theirs = (Resources[mode](NotSent()) for mode in (Blocking, Awaiting))  # type: ignore[valid-type]
    assert {name: type(value) for name, value in vars(ours).items()} == {
        name: type(value) for name, value in vars(theirs).items()
    }


class NotSent:
    def send(self, call: Any) -> Any:
        raise NotImplementedError

    pages = send


def test_version_of_the_client_is_that_of_the_api() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert thaiqr.__version__ == project["version"] == openapi.DOCUMENT["info"]["version"]


def test_client_imports_nothing_of_the_service() -> None:
    """Without the extra `cli` only httpx is installed."""
    found: set[str] = set()
    package = SOURCE / "src" / "thaiqr"
    for source in set(package.rglob("*.py")) - set((package / "cli").rglob("*.py")):
        found |= imports(source.read_text())
    assert {name for name in found if name not in sys.stdlib_module_names} == {
        "httpx",
        "thaiqr",
    }


def imports(source: str) -> set[str]:
    """The first names of the modules that a source imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found
