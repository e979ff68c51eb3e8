"""No console page answers with an internal error: each role opens every page with every kind of id."""

import re
from collections.abc import Iterator
from itertools import cycle, repeat
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse

from audit_trail.act_pages import ActPages
from console.people.roles import Role
from core import clock, ids
from core.database.columns import PublicId
from tests.conftest import SandboxBankClient, Shop
from tests.console.people.test_role_matrix import World, person, world
from tests.examples import FACTOR, some
from tests.reconciliation.builders import Seller
from tests.refunds.builders import NOBODY, PAYEE

__all__ = ["world"]

ODD_TEXTS = [
    "", "x", "1998.00", "-1", "9" * 40, "9999-99-99", "0001-01-01", "wd_", "ref_" + "ก" * 27, "สมชาย",
    "\u200b", "\0", "'; --", "a" * 3_000, "💩", "%00", "../..", "all", "null", "pay_ 1",
]  # fmt: skip
ORDERS = ["o=1.-2", "o=-99", "o=x&p=2", "all=&p=-1", "_facets=1"]
PREFIX = re.compile(r'ids\.(?:new|first)\(\s*"([a-z]{2,3}_)"')


def declared_prefixes() -> set[str]:
    """The prefix of each kind of id that the service makes."""
    folders = {Path(app.path) for app in apps.get_app_configs() if "site-packages" not in app.path}
    sources = (source.read_text() for folder in folders for source in folder.rglob("*.py"))
    return {prefix for text in sources for prefix in PREFIX.findall(text)}


def known_ids() -> dict[str, list[str]]:
    """An id of each column that has public ids, by their prefix."""
    found: dict[str, list[str]] = {}
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, PublicId) or isinstance(getattr(field, "target_field", None), PublicId):
                values = model._base_manager.values_list(field.attname, flat=True)
                for value in filter(None, values[:1]):
                    found.setdefault(value.partition("_")[0] + "_", []).append(value)
    return found


def lists() -> Iterator[tuple[Any, str]]:
    for model, model_admin in admin.site._registry.items():
        yield model_admin, f"admin:{model._meta.app_label}_{model._meta.model_name}"


def test_no_page_shows_what_is_sealed_or_its_digest(admin_client: Client, rf: RequestFactory) -> None:
    request = rf.get("/admin/")
    request.user = User.objects.get()
    for model_admin, _ in lists():
        shown = model_admin.get_fields(request)
        assert [name for name in shown if str(name).endswith(("_sealed", "_digest"))] == [], model_admin


def filters(client: Client, address: str) -> list[str]:
    """The parameters that the filters of a list take."""
    answer: Any = client.get(address)
    shown = answer.context_data["cl"]
    return [name for spec in shown.filter_specs for name in spec.expected_parameters() if name]


def act_pages(model_admin: Any, page: str, rows: list[Any]) -> Iterator[str]:
    """The forms of what staff do, also for rows for which it is not possible."""
    if isinstance(model_admin, ActPages):
        yield from (reverse(f"{page}_list_act", args=[act.slug]) for act in model_admin.list_acts)
        for act in model_admin.object_acts:
            yield from (reverse(f"{page}_act", args=[quote(key), act.slug]) for key in (*rows, "x"))


@pytest.fixture
def crowded(world: World, shop: Shop, bank: SandboxBankClient) -> World:
    """With money in all situations, above all what waits for a second person."""
    seller = Seller(shop, bank)
    seller.refund(seller.paid(payer=NOBODY), amount=200, destination=PAYEE)
    for make in (seller.unmatched, seller.duplicate, seller.late):
        make()
    seller.reverse(seller.sale(500))
    return world


@pytest.mark.slow
@pytest.mark.parametrize("role", [*some([*Role]), None])
def test_no_console_page_answers_with_an_internal_error(crowded: World, role: Role | None) -> None:
    """None is somebody who may do everything. Only this person searches and filters each list.

    What roles may do is tested by `tests/console/people/test_role_matrix.py`.
    """
    if role is None:
        client = Client()
        client.force_login(User.objects.create_superuser("everything"))
    else:
        client = person(role)
    known = known_ids()
    assert declared_prefixes() >= {"pay_", "wd_", "ref_", "apr_", "evt_"}
    texts = [each for values in known.values() for each in dict.fromkeys(values)]
    texts += [ids.new(prefix, clock.now()) for prefix in declared_prefixes()] + ODD_TEXTS
    broken = [each for each in addresses(client, texts, may_everything=role is None) if fails(client, each)]
    assert broken == []


def addresses(client: Client, texts: list[str], *, may_everything: bool) -> Iterator[str]:
    """Pages without a row, the search for each text, and each list with its newest rows and its filters.

    Each list and each filter gets one odd text, and each list one order, in turn. All with EXAMPLES_FACTOR=1.
    """
    odd, orders = (
        cycle([text] for text in texts) if FACTOR < 1 else repeat(texts) for texts in (ODD_TEXTS, ORDERS)
    )
    for page in ("index", "monthly_report", "on_the_way", "exports", "reconciliation_slipcheck_check"):
        yield from (f"{reverse(f'admin:{page}')}?mode={mode}" for mode in ("live", "test"))
    yield reverse("mfa_index")
    searched = texts if may_everything else some(texts)
    yield from (f"{reverse('admin:search')}?{urlencode({'q': text})}" for text in searched)
    for model_admin, page in lists():
        listed = reverse(f"{page}_changelist")
        newest = model_admin.model._default_manager.order_by("-pk").values_list("pk", flat=True)
        rows = list(newest[: 2 if FACTOR >= 1 else 1])
        yield from (listed, *(reverse(f"{page}_change", args=[quote(key)]) for key in rows))
        if may_everything:
            yield from (f"{listed}?{urlencode({'q': text})}" for text in (*next(odd), *rows))
            yield from (f"{listed}?{query}" for query in next(orders))
            yield from act_pages(model_admin, page, rows)
            for name in filters(client, listed):
                yield from (f"{listed}?{urlencode({name: text})}" for text in next(odd))


def fails(client: Client, address: str) -> bool:
    client.raise_request_exception = False
    try:
        return client.get(address).status_code >= 500
    finally:
        client.cookies.pop("messages", None)
