"""Each role tries each act of the console through its page. An act that is not declared fails the test."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.urls import URLResolver, reverse

from approvals import payout_accounts
from approvals.models import Approval
from audit_trail.act_pages import ActPages, ObjectAct
from audit_trail.notes.acts import SLUGS
from audit_trail.pages import ReadOnlyAdmin
from console.lists import navigation
from console.management.commands import write_roles
from console.people import roles
from console.people.roles import Role
from core import clock, ids
from core.http.scopes import Scope
from merchants.bank_acts import BANK_ACTS
from merchants.models import HoldsPayers, Merchant
from merchants.services import set_policy
from operations.audit.month_close.categories import Category
from operations.models import DailyClose, MonthClose
from reconciliation.exceptions.exception_acts import EXCEPTION_ACTS
from reconciliation.models import BankTransaction, SlipCheck
from refunds.models import Refund
from settlements.models import AcquirerTransfer, OpenQuestion
from tests import tables
from tests.authenticator_app import enrolled
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.merchants.connection_configs import BBL_FORM, SCB_FORM
from tests.reconciliation.builders import Seller
from tests.reconciliation.claims.builders import claim_of
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.staff_acts import send_act
from tests.webhooks.builders import make_endpoint
from tests.webhooks.messages.destinations import make as make_destination
from tests.webhooks.messages.line_double import CHAT, TOKEN
from tests.withdrawals.builders import withdrawn
from transfers.models import SafeMode, SafeModeCause, Transfer
from webhooks.models import Delivery, Endpoint
from withdrawals.models import Withdrawal

# The lists have the permission that Django gives them, except this one, which is a view of several tables.
LIST_PERMISSIONS = {"reconciliation.reconciliationexception": "reconciliation.view_banktransaction"}
EXCEPTIONS = "reconciliation.reconciliationexception"
# Acts on rows of a list, which Django calls actions.
BULK_PERMISSIONS = {(EXCEPTIONS, each.slug): each.permission for each in EXCEPTION_ACTS if each.is_bulk}
# Acts that change no row if they are repeated, or if there is nothing to do.
MAY_CHANGE_NOTHING = {
    "close-month",
    "undo",  # the day of the import is closed
    "never-arrived",
    "arrived",
    "resume",
    "skip-pause",
    "replay",
    "enable",
    *(each.slug for each in EXCEPTION_ACTS),  # most are not possible, and lists ask first
}
TRANSFER_SLUGS = ("arrived", "never-arrived", "cancel")
ENDPOINT_SLUGS = ("test", "skip-pause", "replay", "enable", "disable")
PROOF_SLUGS = ("publish-proof", "withdraw-proof")
MERCHANT_SLUGS = (
    *("issue-key", "accept-late-money", "review-late-money", "rename", "tax-details"),
    *("withdraw-unsettled", "wait-for-settlement", "set-fees"),
    *(
        "refuse-open-references",
        "allow-open-references",
        "hold-payers",
        "page-origins",
        "page-settings",
        "test-connection",
    ),
    "test-standby",
    *("add-payout-account", "switch-payout-list-on", "switch-payout-list-off"),
    *("set-nightly-payout", "stop-nightly-payout", "suspend", "lift-suspension"),
    "invite-owner",
)
EMPTY_CLOSE = json.dumps(
    {"currency": "THB", "closed_at": "", "ledger": {"entries": 0, "hash": ""}, "audit_trail": None}
    | {"previous": None, "merchants": [], "banks": [], "accounts": []}
)
EMPTY_MONTH = json.dumps(
    {
        "currency": "THB",
        "closed_at": "",
        "ends_at": "2026-01-01T00:00:00Z",
        "audit_trail": None,
        "previous": None,
    }
    | {"parties": [], "statement_lines": [], "on_the_way": [], "corrections": []}
    | {"total": {"party": "all", "opening": 0, "closing": 0} | dict.fromkeys(Category.values, 0)}
)
# Pages besides those that Django gives each model, and the permission of each.
PAGE_PERMISSIONS = {
    "reconciliation_slipcheck_check": "reconciliation.check_slip",
    "reconciliation_slipcheck_ask": "reconciliation.ask_bank",
    "reconciliation_statement_import": "reconciliation.import_statement",
    "reconciliation_statement_begin": "reconciliation.import_statement",
    "merchants_merchant_suggest": "merchants.view_merchant",
    "lift_lockout": "console.lift_lockout",
    "exports": "audit_trail.export_lists",
    "monthly_report": "audit_trail.export_lists",
    "on_the_way": "settlements.view_acquirertransfer",
    "payments_payment_evidence": "operations.view_evidence",
    "operations_dailyclose_download": "operations.view_dailyclose",
    "operations_dailyclose_print": "operations.view_dailyclose",
    "operations_monthclose_download": "operations.view_monthclose",
    "operations_monthclose_print": "operations.view_monthclose",
    "auth_user_password_change": "auth.change_user",
    "auth_user_add": "auth.add_user",
    "auth_user_invite": "auth.add_user",
    "auth_user_invite_again": "auth.add_user",
    "auth_user_change": "auth.change_user",
    "auth_group_add": "auth.add_group",
    "auth_group_change": "auth.change_group",
    "auth_group_delete": "auth.delete_group",
}
# Pages for everybody who is logged in. They show only what their user may see.
OPEN_PAGES = {
    "index", "login", "logout", "password_change", "password_change_done", "autocomplete", "jsi18n",
    "view_on_site", "app_list", "search", "search_typed", "language", "invitation",
}  # fmt: skip
# `test_background_exports.py` tries the download.
OTHER_PAGES = {"export_download"}
ACT_PAGES = ("act", "list_act")
DJANGO_PAGES = ("changelist", "add", "history", "delete", "change")
# Checked inside of pages, not by a page of their own.
INNER_PERMISSIONS = {
    "audit_trail.export_lists",
    "merchants.issue_withdrawal_key",
    "audit_trail.view_personal_data",
    "shop.look_at_shop",
}


@dataclass
class Probe:
    """A request by which a person tries an act. `changes`: whether it must change a row if it is allowed."""

    permission: str
    path: str
    data: dict[str, Any] | None = None
    changes: bool = False
    name: str = field(default="", compare=False)


class World:
    """Something to try each act on."""

    def __init__(self, shop: Shop, bank: SandboxBankClient, limit: Callable[[int], None]) -> None:
        seller, live = Seller(shop, bank), open_shop("Khao Soi", mode="live")
        self.shop = shop
        make_endpoint(shop)
        self.bank_transaction: BankTransaction = seller.mismatch()
        unmatched = seller.unmatched()
        self.payment_id = seller.paid()
        seller.refund(self.payment_id, amount=100)
        refund = Refund.objects.get()
        claim = claim_of(shop, bank)
        set_policy(shop.merchant.pk, holds_payers=HoldsPayers.NO)
        held = shop.qr_code(client_name="Somying Jaidee")
        bank.notify(held)
        seller.paid()
        withdrawn(shop, amount=101)
        withdrawn(shop, amount=103)
        transfer = Transfer.objects.get(amount=103)
        self.safe_mode = SafeMode.objects.create(cause=SafeModeCause.BY_STAFF, started_at=clock.now())
        limit(100)
        link = shop.post("/v1/payment-links", {"amount": 100}).json()
        withdrawn(shop, amount=102)
        withdrawn(shop, amount=104)
        self.approval, self.rejected = Approval.objects.waiting().order_by("requested_at")
        # Other probes set the password of the clerk, which ends sessions.
        self.colleague = User.objects.create_user("prasit", is_staff=True)
        enrolled(self.colleague)
        Client().force_login(self.colleague)
        line = credit_line(shop.qr_code(), clock.now(), ref1="NOBODYKNOWSTHIS00099")
        noted = {
            "payments.payment": self.payment_id,
            "refunds.refund": refund.pk,
            "withdrawals.withdrawal": Withdrawal.objects.get(amount=101).pk,
            "approvals.approval": self.approval.pk,
            EXCEPTIONS: unmatched.pk,
        }
        self.rows_of_acts = {
            ("payments.payment", "refund"): self.payment_id,
            ("payments.payment", "expire"): shop.qr_code()["payment_id"],
            ("payments.payment", "lift-hold"): held["payment_id"],
            ("links.paymentlink", "deactivate"): link["payment_link_id"],
            ("webhooks.delivery", "resend"): Delivery.objects.latest("pk").pk,
            ("refunds.refund", "cancel"): refund.pk,
            ("refunds.refund", "revoke-claim-link"): claim.refund["refund_id"],
            ("withdrawals.withdrawal", "cancel"): Withdrawal.objects.get(amount=101).pk,
            **{("transfers.transfer", slug): transfer.pk for slug in TRANSFER_SLUGS},
            **{("webhooks.endpoint", slug): Endpoint.objects.webhooks().get().pk for slug in ENDPOINT_SLUGS},
            ("webhooks.endpoint", "delete"): make_destination(None).pk,
            ("auth.user", "reset-second-step"): self.colleague.pk,
            ("auth.user", "end-sessions"): self.colleague.pk,
            ("auth.user", "disable"): User.objects.create_user("leaves", is_staff=True).pk,
            ("auth.user", "enable"): User.objects.create_user("left", is_staff=True, is_active=False).pk,
            **{("merchants.merchant", slug): shop.merchant.pk for slug in MERCHANT_SLUGS},
            **{("merchants.apikey", slug): shop.merchant.keys.get().pk for slug in ("roll", "revoke")},
            **{("merchants.merchant", each.slug): live.merchant.pk for each in BANK_ACTS},
            **{("merchants.merchant", slug): live.merchant.pk for slug in PROOF_SLUGS},
            ("reconciliation.statement", "undo"): import_file(bot_file(line)).statement.pk,
            ("transfers.safemode", "resume"): self.safe_mode.pk,
            ("approvals.approval", "approve"): self.approval.pk,
            ("approvals.approval", "reject"): self.rejected.pk,
            **{(EXCEPTIONS, each.slug): unmatched.pk for each in EXCEPTION_ACTS},
            (EXCEPTIONS, "accept"): self.bank_transaction.pk,
            **{(label, slug): row for label, row in noted.items() for slug in SLUGS},
        }
        now = clock.now()
        self.account, removed = (
            payout_accounts.add(
                shop.merchant, bank_code="014", bank_account=number, account_name="Malee", now=now
            )
            for number in ("4051234567", "4051234568")
        )
        self.rows_of_acts["approvals.payoutaccount", "remove"] = removed.pk
        opened = {"acquirer": "omise", "subject": "x", "difference": 1, "opened_at": now}
        question = OpenQuestion.objects.create(id=ids.new("oq_", now), kind="adjustment", **opened)
        self.rows_of_acts["settlements.openquestion", "close"] = question.pk
        failed, paid = (
            AcquirerTransfer.objects.create(
                id=AcquirerTransfer.new_id(at),
                acquirer="omise",
                transfer_id=f"trsf_{state}",
                amount=1,
                fee=0,
                fee_vat=0,
                net_amount=1,
                state=state,
                created_at=at,
                arrived_at=at if state == "paid" else None,
            )
            for state, at in (("failed", now - timedelta(days=1)), ("paid", now))
        )
        failed.items.create(kind="adjustment", reference="dspt_x", amount=1, net_amount=1)
        about_failed = paid.questions.create(id=ids.new("oq_", now), kind="amount_differs", **opened)
        self.rows_of_acts["settlements.openquestion", "failed-transfer"] = about_failed.pk
        self.failed_transfer = failed
        self.slip = SlipCheck.objects.create(
            id="slp_x", sending_bank="014", transaction_id="A1", checked_at=now
        )
        self.clerk = User.objects.create_user("somsri", is_staff=True)
        self.group = Group.objects.create(name="Cashiers")
        month = date(2025, 12, 1)
        self.month = MonthClose.objects.create(number=1, month=month, body=EMPTY_MONTH, hash="0" * 64)
        self.close = DailyClose.objects.create(number=1, day=now.date(), body=EMPTY_CLOSE, hash="0" * 64)

    def path(self, page: str) -> str:
        rows = {
            "user": self.clerk,
            "group": self.group,
            "slipcheck": self.slip,
            "dailyclose": self.close,
            "monthclose": self.month,
        }
        if page == "reconciliation_statement_begin":
            return reverse(f"admin:{page}", args=["stm_unknown"])
        if page == "payments_payment_evidence":
            return reverse(f"admin:{page}", args=[self.payment_id, "pdf"])
        needs_row = page.endswith(("_change", "_delete", "_ask", "_download", "_print", "_again"))
        return reverse(f"admin:{page}", args=[quote(rows[page.split("_")[1]].pk)] if needs_row else [])


@pytest.fixture
def world(shop: Shop, bank: SandboxBankClient, settings: Any, declared_roles: None) -> World:
    return World(shop, bank, lambda satang: setattr(settings, "APPROVAL_ITEM_LIMIT", satang))


def registered() -> dict[str, Any]:
    return {model._meta.label_lower: page for model, page in admin.site._registry.items()}


def list_url(label: str) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_changelist")


def list_permission(label: str) -> str:
    app_label, model = label.split(".")
    return LIST_PERMISSIONS.get(label, f"{app_label}.view_{model}")


def probes(world: World) -> Iterator[Probe]:
    for label in registered():
        yield Probe(list_permission(label), list_url(label), name=label)
    # test_exports.py tries all lists
    asked = {"list": "payments.payment", "query": "", "file_type": "csv"}
    yield Probe("audit_trail.export_lists", reverse("admin:exports"), asked, name="export")
    for page, permission in PAGE_PERMISSIONS.items():
        yield Probe(permission, world.path(page), name=page)
    for label, each in object_acts():
        row = world.rows_of_acts.get((label, each.slug))
        page, key = ("list_act", []) if row is None else ("act", [quote(row)])
        path = reverse(f"admin:{label.replace('.', '_')}_{page}", args=[*key, each.slug])
        filled: dict[str, Any] = {"reason": "The customer called.", "token": str(uuid4())}
        filled |= {
            "amount": "1",
            "kind": "other",
            "scopes": [Scope.PAYMENTS_READ.value],
            "overlap_hours": "1",
            "note": "A dispute.",
            "starts_on": "2200-01-01",
            "fixed": "5",
            "rate": "0.80",
            "name": "Som Tam",
            "type": "line",
            "to": "role:finance" if each.slug in SLUGS else CHAT,
            "text": "The customer called.",
            "line_token": TOKEN,
            "events": ["job.failed"],
            "language": "th",
            "username": "malee",
            "email": "malee@shop.example",
            "mode": "live",
            "late_money": "review",
            "holds_payers": "unknown",
            "bank_code": "014",
            "bank_account": "4057654321",
            "account_name": "Malee",
            "account": world.account.pk,
            "failed_transfer": world.failed_transfer.pk,
            "days": "every_day",
            "time": "21:00",
            "float_amount": "1",
            **(BBL_FORM if each.slug.endswith("bbl") else SCB_FORM),
        }
        yield Probe(
            each.permission, path, filled, changes=each.slug not in MAY_CHANGE_NOTHING, name=each.slug
        )
    for (label, name), permission in BULK_PERMISSIONS.items():
        row = registered()[label].model._default_manager.order_by("pk").first()
        assert row is not None, label
        chosen: dict[str, Any] = {"action": name, "_selected_action": [row.pk]}
        yield Probe(permission, list_url(label), chosen, changes=name not in MAY_CHANGE_NOTHING, name=name)


def object_acts() -> Iterator[tuple[str, ObjectAct]]:
    """The acts that pages of single rows and of lists declare."""
    for label, page in registered().items():
        if isinstance(page, ActPages):
            for each in (*page.object_acts, *page.list_acts):
                yield label, each


def person(role: Role) -> Client:
    """Somebody who is logged in and has exactly this role."""
    user = User.objects.create_user(f"a-{role}", is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    client = Client()
    client.force_login(user)
    return client


def rows_now() -> list[Any]:
    """How many rows all tables have, and which transactions wrote them."""
    with connection.cursor() as cursor:
        cursor.execute(tables.version_query())
        return sorted(cursor.fetchall())


def try_out(client: Client, probe: Probe) -> int:
    answer = client.get(probe.path) if probe.data is None else client.post(probe.path, probe.data)
    return int(answer.status_code)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.slow
def test_role_can_do_its_acts_and_no_others(world: World, role: Role) -> None:
    allowed, client, every = roles.permissions_of(role), person(role), list(probes(world))
    before = rows_now()
    for probe in (each for each in every if each.permission not in allowed):
        for data in [probe.data] if probe.data else [None, {"name": "x"}]:
            status = try_out(client, Probe(probe.permission, probe.path, data))
            assert status == 403, (role, probe)
    assert rows_now() == before
    for probe in (each for each in every if each.permission in allowed):
        before = rows_now() if probe.changes else []
        # 404: this exception has no such act.
        expected = (200, 302, 404) if probe.name in {each.slug for each in EXCEPTION_ACTS} else (200, 302)
        assert try_out(client, probe) in expected, (role, probe)
        assert not probe.changes or rows_now() != before, (role, probe)


@pytest.mark.slow
def test_only_a_role_with_the_permission_issues_keys_that_withdraw(world: World) -> None:
    for role in Role:
        client, scopes = person(role), [Scope.WITHDRAWALS_WRITE.value]
        answer = send_act(client, Merchant, world.shop.merchant.pk, "issue-key", scopes=scopes)
        text = answer.content.decode()
        assert ("tq_test_" in text) == ("merchants.issue_withdrawal_key" in roles.permissions_of(role)), role


@pytest.mark.slow
def test_role_sees_personal_data_only_with_the_permission(world: World) -> None:
    page = reverse("admin:payments_payment_change", args=[quote(world.payment_id)])
    for role in Role:
        text = person(role).get(page).content.decode()
        may_see = "audit_trail.view_personal_data" in roles.permissions_of(role)
        assert ("Somchai Jaidee" in text) == may_see, role


# --- the declaration is complete ------------------------------------------------------------------------


def test_declaration_names_every_list() -> None:
    needed = {list_permission(label) for label in registered()}
    assert needed - roles.PERMISSIONS == set(), "add them to console/people/sections.toml"


def test_internals_are_the_lists_of_the_system_section() -> None:
    [internals] = roles.SECTIONS[-1].acts
    of_section = {list_permission(label) for label in registered() if label not in navigation.NAMED}
    assert set(internals.permissions) == of_section
    assert internals.roles == (Role.ADMIN,)


def test_matrix_tries_every_act_on_rows_of_every_list(admin_client: Client, rf: Any) -> None:
    request = rf.get("/admin/")
    request.user = User.objects.get(username="admin")
    found = {(label, name) for label, page in registered().items() for name in page.get_actions(request)}
    assert found == set(BULK_PERMISSIONS), "add them to console/people/sections.toml and to the matrix"


@pytest.mark.slow
def test_matrix_tries_every_page() -> None:
    found = set(names(admin.site.get_urls()))
    of_models = {f"{label.replace('.', '_')}_{page}" for label in registered() for page in DJANGO_PAGES}
    of_acts = {f"{label.replace('.', '_')}_{page}" for label, _act in object_acts() for page in ACT_PAGES}
    assert found - of_models - of_acts - OPEN_PAGES - OTHER_PAGES - set(PAGE_PERMISSIONS) == set()


def names(patterns: Any) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from names(pattern.url_patterns)
        elif pattern.name:
            yield pattern.name


def test_only_staff_and_roles_are_changed_by_forms() -> None:
    """So the matrix has all forms of models. A page that changes rows in another way needs a probe."""
    writable = {label for label, page in registered().items() if not isinstance(page, ReadOnlyAdmin)}
    assert writable == {"auth.user", "auth.group"}


def test_every_declared_permission_is_checked_somewhere() -> None:
    checked = {list_permission(label) for label in registered()} | INNER_PERMISSIONS
    checked |= {*BULK_PERMISSIONS.values(), *PAGE_PERMISSIONS.values()}
    checked |= {each.permission for _label, each in object_acts()}
    assert checked == roles.PERMISSIONS


def test_every_act_on_exceptions_needs_its_own_permission() -> None:
    assert len({each.permission for each in EXCEPTION_ACTS}) == len(EXCEPTION_ACTS)


def test_an_act_is_declared_once() -> None:
    declared = [permission for act in roles.ACTS for permission in act.permissions]
    assert len(declared) == len(set(declared))
    labels = [str(act.label) for act in roles.ACTS]
    assert len(labels) == len(set(labels))


def test_document_of_roles_is_current() -> None:
    assert write_roles.DOCUMENT.read_text() == write_roles.written(), "run `make schema`"


# --- the groups -----------------------------------------------------------------------------------------


def names_in(group: Group) -> set[str]:
    found = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{app_label}.{codename}" for app_label, codename in found}


def test_groups_have_the_declared_permissions(declared_roles: None) -> None:
    for role in Role:
        assert names_in(Group.objects.get(name=role)) == roles.permissions_of(role)


@pytest.mark.slow
def test_declaration_is_applied_again_and_keeps_other_groups(declared_roles: None) -> None:
    """As a later version does, whose permission is new, while an old one was taken from a role by hand."""
    from django.apps import apps

    mine = Group.objects.create(name="Cashiers")
    mine.permissions.set(Permission.objects.filter(codename="view_payment"))
    support = Group.objects.get(name=Role.SUPPORT)
    support.permissions.set(Permission.objects.filter(codename="decide_approval"))
    Permission.objects.filter(codename="check_slip").delete()
    roles.apply(apps)
    assert names_in(support) == roles.permissions_of(Role.SUPPORT)
    assert names_in(mine) == {"payments.view_payment"}


def test_finance_and_admin_share_nothing_but_reading_and_support() -> None:
    shared = roles.permissions_of(Role.FINANCE) & roles.permissions_of(Role.ADMIN)
    assert shared - roles.permissions_of(Role.SUPPORT) == {
        "audit_trail.export_lists",
        "audit_trail.view_auditrecord",
        "operations.view_dailyclose",
        "operations.view_monthclose",
    }
    assert "audit_trail.view_personal_data" not in roles.permissions_of(Role.VIEWER)
    assert all(".view_" in permission for permission in roles.permissions_of(Role.VIEWER))
