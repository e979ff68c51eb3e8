"""The roles of staff, and which act belongs to which role.

This is the only declaration. The migrations make groups from it, `docs/roles.md` shows it, and a test tries
each act with each role. To add an act, declare its permission in the `Meta` of its model, add it here, and
add a migration that runs `roles.apply`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.contrib.auth.management import create_permissions
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Role(StrEnum):
    """The name of the group that a migration makes."""

    VIEWER = "viewer"
    SUPPORT = "support"
    FINANCE = "finance"
    ADMIN = "admin"


ROLE_LABELS: dict[Role, Promise] = {
    Role.VIEWER: _("Sees all payments, refunds, merchants and webhooks, without personal data."),
    Role.SUPPORT: _("Sees personal data too, repairs webhooks, checks slips and lifts lockouts."),
    Role.FINANCE: _("Moves money: approvals, refunds, exceptions and statements."),
    Role.ADMIN: _("Sets up merchants, keys, payout accounts, staff and roles. Cannot approve money."),
}
EVERYBODY = tuple(Role)
WITH_CUSTOMERS = (Role.SUPPORT, Role.FINANCE, Role.ADMIN)
MONEY = (Role.FINANCE,)
SETUP = (Role.ADMIN,)
CONTROL = (Role.FINANCE, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class ConsoleAct:
    """Something that staff may do in the console.

    label: what it is, in the words of staff.
    roles: the roles that may do it.
    permissions: what the pages check, such as `refunds.cancel_refund`. An act has several only if it shows
        several lists.
    """

    label: Promise
    roles: tuple[Role, ...]
    permissions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Area:
    """Acts that belong together, as in the menu."""

    label: Promise
    acts: tuple[ConsoleAct, ...]


def _act(label: Promise, roles: tuple[Role, ...], *permissions: str) -> ConsoleAct:
    return ConsoleAct(label, roles, permissions)


AREAS: tuple[Area, ...] = (
    Area(
        _("Payments"),
        (
            _act(
                _("See payments"),
                EVERYBODY,
                "payments.view_payment",
                "payments.view_cardcharge",
                "payments.view_chargeanswer",
                "payments.view_paymentexception",
                "qrcodes.view_qrcode",
                "transactions.view_transaction",
            ),
            _act(
                _("See names, accounts and messages of customers"),
                WITH_CUSTOMERS,
                "audit_trail.view_personal_data",
            ),
            _act(_("Expire a code"), WITH_CUSTOMERS, "qrcodes.expire_qrcode"),
            _act(
                _("See what banks answer about payments"),
                EVERYBODY,
                "reconciliation.view_inquiry",
                "reconciliation.view_inquiryanswer",
                "reconciliation.view_confirmationinquiry",
            ),
            _act(
                _("See balances and the ledger"),
                EVERYBODY,
                "ledger.view_account",
                "ledger.view_journal",
                "ledger.view_entry",
            ),
        ),
    ),
    Area(
        _("Refunds"),
        (
            _act(_("See refunds"), EVERYBODY, "refunds.view_refund", "refunds.view_refundreversal"),
            _act(_("Refund a payment"), MONEY, "refunds.create_refund"),
            _act(_("Cancel a refund that is not submitted"), MONEY, "refunds.cancel_refund"),
            _act(_("Revoke the claim link of a refund"), WITH_CUSTOMERS, "refunds.revoke_claimlink"),
        ),
    ),
    Area(
        _("Withdrawals"),
        (
            _act(
                _("See withdrawals and transfers"),
                EVERYBODY,
                "withdrawals.view_withdrawal",
                "transfers.view_transfer",
                "transfers.view_safemode",
                "transfers.view_transferevent",
            ),
            _act(_("Cancel a withdrawal"), MONEY, "withdrawals.cancel_withdrawal"),
            _act(_("Say whether an overdue transfer arrived"), MONEY, "transfers.complete_transfer"),
            _act(_("Cancel a transfer that never reached its bank"), MONEY, "transfers.cancel_transfer"),
            _act(_("Pause all outgoing money"), MONEY, "transfers.pause_transfers"),
            _act(_("Resume outgoing money after a restore"), MONEY, "transfers.resume_transfers"),
        ),
    ),
    Area(
        _("Approvals"),
        (
            _act(_("See approvals"), EVERYBODY, "approvals.view_approval"),
            _act(_("Approve and reject outgoing money of others"), MONEY, "approvals.decide_approval"),
        ),
    ),
    Area(
        _("Exceptions"),
        (
            _act(
                _("See exceptions, bank transactions and slips"),
                EVERYBODY,
                "reconciliation.view_banktransaction",
                "reconciliation.view_resolution",
                "reconciliation.view_return",
                "reconciliation.view_slipcheck",
                "transfers.view_transfercontradiction",
            ),
            _act(_("Check a payer's slip"), WITH_CUSTOMERS, "reconciliation.check_slip"),
            _act(_("Ask the bank about a slip"), WITH_CUSTOMERS, "reconciliation.ask_bank"),
            _act(
                _("Dismiss what is about no money of ours"),
                WITH_CUSTOMERS,
                "reconciliation.dismiss_exception",
            ),
            _act(_("Accept money for its payment"), MONEY, "reconciliation.accept_exception"),
            _act(_("Attach money to another payment"), MONEY, "reconciliation.attach_exception"),
            _act(_("Send money back to the payer"), MONEY, "reconciliation.send_back_exception"),
            _act(
                _("Accept an over-payment and send the excess back to the payer"),
                MONEY,
                "reconciliation.return_excess_exception",
            ),
            _act(_("Send money back to another account"), MONEY, "reconciliation.send_to_exception"),
            _act(
                _("Record money that was sent back at the bank"),
                MONEY,
                "reconciliation.manual_return_exception",
            ),
            _act(_("Count money once that was reported twice"), MONEY, "reconciliation.merge_exception"),
            _act(_("Write off money that a bank took back"), MONEY, "reconciliation.write_off_exception"),
            _act(
                _("Credit the merchant with a refund that came back"),
                MONEY,
                "reconciliation.credit_exception",
            ),
            _act(
                _("Confirm money that only a statement reports"),
                MONEY,
                "reconciliation.confirm_banktransaction",
            ),
            _act(_("Book a transfer as returned"), MONEY, "reconciliation.returned_exception"),
            _act(_("Book a transfer or card payment as failed"), MONEY, "reconciliation.failed_exception"),
            _act(_("Reopen a resolved exception"), MONEY, "reconciliation.reopen_exception"),
        ),
    ),
    Area(
        _("Merchants"),
        (
            _act(
                _("See merchants, keys, bank connections and payout accounts"),
                EVERYBODY,
                "merchants.view_merchant",
                "merchants.view_apikey",
                "merchants.view_bankconnection",
                "approvals.view_payoutaccount",
                "approvals.view_payoutpolicy",
            ),
            _act(_("See the requests of merchants"), EVERYBODY, "request_log.view_requestrecord"),
            _act(_("Create a merchant"), SETUP, "merchants.create_merchant"),
            _act(_("Rename a merchant"), SETUP, "merchants.rename_merchant"),
            _act(
                _("Connect a merchant to its bank, and renew the connection"),
                SETUP,
                "merchants.connect_bank",
            ),
            _act(_("Test the connection to a bank"), WITH_CUSTOMERS, "merchants.test_connection"),
            _act(_("Decide what happens to payments after expiry"), SETUP, "merchants.set_late_money"),
            _act(_("Decide whether a reference has one open code"), SETUP, "merchants.set_open_references"),
            _act(_("Name the sites of a shop for its payment page"), SETUP, "merchants.set_page_origins"),
            _act(_("Issue a key"), SETUP, "merchants.issue_key"),
            _act(_("Issue a key that can withdraw"), SETUP, "merchants.issue_withdrawal_key"),
            _act(_("Replace a key by a new one"), SETUP, "merchants.roll_key"),
            _act(_("Revoke a key"), SETUP, "merchants.revoke_key"),
            _act(_("Add a payout account"), SETUP, "approvals.add_payoutaccount"),
            _act(_("Remove a payout account"), SETUP, "approvals.delete_payoutaccount"),
            _act(_("Switch the list of payout accounts on or off"), SETUP, "approvals.change_payoutpolicy"),
        ),
    ),
    Area(
        _("Webhooks"),
        (
            _act(
                _("See endpoints, events and deliveries"),
                EVERYBODY,
                "webhooks.view_endpoint",
                "webhooks.view_endpointhealth",
                "webhooks.view_endpointaction",
                "webhooks.view_event",
                "webhooks.view_delivery",
                "webhooks.view_deliveryattempt",
            ),
            _act(_("Disable an endpoint"), WITH_CUSTOMERS, "webhooks.disable_endpoint"),
            _act(_("Enable an endpoint"), WITH_CUSTOMERS, "webhooks.enable_endpoint"),
            _act(_("Skip the pause of an endpoint"), WITH_CUSTOMERS, "webhooks.skip_pause"),
            _act(_("Replay held deliveries"), WITH_CUSTOMERS, "webhooks.replay_deliveries"),
            _act(_("Send an event again"), WITH_CUSTOMERS, "webhooks.resend_delivery"),
        ),
    ),
    Area(
        _("Statements"),
        (
            _act(
                _("See statements and bank messages"),
                EVERYBODY,
                "reconciliation.view_statement",
                "reconciliation.view_statementline",
                "reconciliation.view_banknotification",
            ),
            _act(_("Import a statement"), MONEY, "reconciliation.import_statement"),
        ),
    ),
    Area(
        _("Audit"),
        (
            _act(_("Search what staff did"), CONTROL, "audit_trail.view_auditrecord"),
            _act(_("Download lists and monthly reports as files"), CONTROL, "audit_trail.export_lists"),
            _act(_("See and download the closes of days"), CONTROL, "operations.view_dailyclose"),
            _act(_("See when nightly jobs ran, and what they found"), EVERYBODY, "operations.view_jobrun"),
        ),
    ),
    Area(
        _("Team"),
        (
            _act(_("Lift a lockout"), WITH_CUSTOMERS, "console.lift_lockout"),
            _act(_("Reset the second step of a colleague's login"), SETUP, "console.reset_second_factor"),
            _act(_("End the sessions of a colleague"), SETUP, "console.end_sessions"),
            _act(_("See staff"), SETUP, "auth.view_user"),
            _act(_("Add staff"), SETUP, "auth.add_user"),
            _act(_("Change staff, their roles and passwords"), SETUP, "auth.change_user"),
            _act(_("See roles"), SETUP, "auth.view_group"),
            _act(_("Add a role"), SETUP, "auth.add_group"),
            _act(_("Change a role"), SETUP, "auth.change_group"),
            _act(_("Delete a role"), SETUP, "auth.delete_group"),
        ),
    ),
    Area(
        _("System"),
        (
            _act(
                _("See heartbeats of processes and pauses of banks"),
                SETUP,
                "operations.view_heartbeat",
                "transfers.view_circuitbreaker",
            ),
        ),
    ),
)
ACTS = tuple(act for area in AREAS for act in area.acts)
ACTS_BY_PERMISSION = {permission: act for act in ACTS for permission in act.permissions}
PERMISSIONS = frozenset(ACTS_BY_PERMISSION)


def permissions_of(role: Role) -> frozenset[str]:
    """Return the permissions of a role, such as `refunds.cancel_refund`."""
    return frozenset(permission for act in ACTS if role in act.roles for permission in act.permissions)


def apply(apps: Any, schema_editor: Any = None) -> None:
    """Give the four groups exactly the declared permissions. Other groups stay as they are.

    A migration of an older version may run before a permission exists. The migration that adds it comes later
    and applies the declaration again.
    """
    _create_missing_permissions(apps, {permission.partition(".")[0] for permission in PERMISSIONS})
    permissions = apps.get_model("auth", "Permission").objects
    known = {
        f"{app_label}.{codename}": key
        for app_label, codename, key in permissions.values_list("content_type__app_label", "codename", "pk")
    }
    for role in Role:
        group, _created = apps.get_model("auth", "Group").objects.get_or_create(name=role.value)
        group.permissions.set([known[each] for each in permissions_of(role) if each in known])


def _create_missing_permissions(apps: Any, app_labels: Iterable[str]) -> None:
    """Django creates permissions only after all migrations, and only for apps with a module of models.

    The apps of a migration have no modules.
    """
    for app_label in app_labels:
        if app_label not in apps.app_configs:
            continue  # an app of a later migration
        config = apps.get_app_config(app_label)
        if getattr(config, "models_module", None) is None:
            config.models_module = True
        create_permissions(config, apps=apps, verbosity=0)


def table() -> str:
    """Return the matrix of acts and roles as Markdown, for `docs/roles.md`."""
    lines = [
        f"| act | {' | '.join(Role)} | permission |",
        f"| --- | {' | '.join(':---:' for _role in Role)} | --- |",
    ]
    for area in AREAS:
        lines.append(f"| **{area.label}** | {' | '.join('' for _role in Role)} | |")
        for act in area.acts:
            marks = " | ".join("yes" if role in act.roles else "-" for role in Role)
            names = ", ".join(f"`{permission}`" for permission in act.permissions)
            lines.append(f"| {act.label} | {marks} | {names} |")
    return "\n".join(lines) + "\n"
