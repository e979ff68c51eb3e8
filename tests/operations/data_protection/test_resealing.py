"""`reseal` seals all data with the newest key while the service runs."""

import base64
import io
import json
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Model
from pytest_django import Settings

from approvals.models import PayoutAccount
from core import clock, ids, vault
from core.database import triggers
from idempotency.models import IdempotencyKey
from merchants import bank_connections
from merchants.models import BankConnection
from operations.audit.daily_close import closing, sealing
from operations.data_protection import resealing
from operations.models import DailyClose, PaymentEvidence
from payments.models import Payment
from reconciliation.models import BankNotification, BankTransaction, StatementImport, StatementLine
from reconciliation.statements import import_jobs
from refunds.models import ClaimLink
from sandbox import orders
from tests.approvals.builders import add_payout_account
from tests.authenticator_app import enrolled
from tests.concurrency import lock_waiters, run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.context import acting_as
from tests.factories import PaymentFactory
from tests.merchants.connection_configs import SCB_CONFIG
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.refunds.builders import RefundShop
from tests.stack import wait_until
from tests.webhooks.builders import SECRET, make_endpoint
from tests.withdrawals.builders import withdrawn
from transfers.models import Transfer
from webhooks import endpoints
from webhooks.models import Endpoint
from withdrawals.models import Withdrawal

pytestmark = pytest.mark.slow

OLD, NEW = vault.new_key(), vault.new_key()
ACCOUNT, PAYER = "7412589630", "3698521470"
FIRST_ROTATION = "the secret of the first rotation"
SECOND_SECRET = "whsec_YSBzZWNyZXQgdGhhdCB0YWtlcyB0aGUgcGxhY2Ugb2Ygb25l"
TOKEN_START = vault.PREFIX
TOKENS = 21  # the number of tokens that `filled_database` seals


class Terminal(io.StringIO):
    """An output that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class CtrlC(Terminal):
    """A terminal that raises `KeyboardInterrupt` after the first table."""

    def write(self, text: str) -> int:
        if "resealed" in text:
            raise KeyboardInterrupt
        return super().write(text)


@pytest.fixture(autouse=True)
def old_key(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    settings.WEBHOOK_PROBE = "off"


@pytest.fixture
def filled_database(shop: Shop, bank: SandboxBankClient, settings: Settings) -> dict[str, str]:
    """Fill every sealed column. Return the fields of the webhook and the code."""
    resealing.write_key_check()
    hook = {"url": "https://shop.example/hook", "events": ["payment.succeeded"], "secret": SECRET}
    webhook: dict[str, str] = shop.post("/v1/webhooks", hook).json()
    for secret in (FIRST_ROTATION, SECOND_SECRET):
        shop.post(f"/v1/webhooks/{webhook['webhook_id']}/secret/rotate", {"secret": secret})
    code: dict[str, str] = ask(shop).json()
    assert bank.notify(code, payer_account=PAYER).status_code == 200
    import_file(bot_file(credit_line(code, BankTransaction.objects.get().paid_at)))
    with acting_as("staff:somsri"):
        for body in (bot_file(credit_line(code, clock.now())), bot_file()):
            kept, *_ = import_jobs.upload(io.BytesIO(body), "day.txt", bank="sandbox", now=clock.now())
            if not StatementImport.objects.exists():
                import_jobs.begin(kept.id, now=clock.now())
    withdrawal_id = withdrawn(shop, bank_account=ACCOUNT)["withdrawal_id"]
    ordered = {"reference": withdrawal_id, "type": "payout", "amount": "1000.00", "currency": "THB"}
    payee = {"bank_code": "014", "account": ACCOUNT, "account_name": "สมชาย ใจดี"}
    orders.accept(orders.parse(ordered | payee, now=clock.now()))
    add_payout_account(shop)
    add_claim_link(RefundShop(shop, bank).refund(code["payment_id"], amount=100)["refund_id"])
    live = open_shop("Khao Soi", mode="live").merchant
    bank_connections.connect(merchant_id=live.id, config=SCB_CONFIG, now=clock.now())
    enrolled(User.objects.create_user("somsri", is_staff=True))
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
    seal_today()
    return webhook | code


def seal_today() -> None:
    """As `closing.close` does it, in the transaction of the test."""
    day = clock.now().astimezone(clock.BANGKOK).date()
    trees = sealing.write_payments(day, 1)
    content = {"day": str(day), "closed_at": "", "audit_trail": None, "evidence": sealing.roots(trees)}
    made = closing.signed(DailyClose, json.dumps(content), None, day=day)
    made.save(force_insert=True)
    sealing.seal(made, trees)


def add_claim_link(refund_id: str) -> None:
    now, link_id = clock.now(), ids.new("clm_", clock.now())
    ClaimLink.objects.create(
        id=link_id,
        refund_id=refund_id,
        token_digest="0" * 64,
        token_sealed=vault.seal("token", context=link_id),
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )


def ask(shop: Shop) -> Any:
    body = {"amount": 150_000, "currency": "THB", "client_bank_account": ACCOUNT}
    return shop.post("/v1/qr-codes", body, key="order 17")


def reseal(stream: io.StringIO | None = None) -> str:
    written = stream or io.StringIO()
    call_command("reseal", stdout=written)
    return written.getvalue()


def tokens() -> list[Any]:
    rows = (
        row
        for model, columns in resealing.sealed_columns().items()
        for row in model._base_manager.values_list(*columns)
    )
    return [token for row in rows for value in row for token in tokens_in(value)]


def tokens_in(value: Any) -> list[Any]:
    """Of a column of text or bytes, or of an object of allauth."""
    if isinstance(value, dict):
        return [str(value.get("secret") or value["seed"])]
    return [value if isinstance(value, str) else bytes(value)] if value else []


def opened_by(key: str) -> int:
    return sum(vault.is_newest(token, keys=[key]) for token in tokens())


def columns_with_tokens() -> set[str]:
    """Every column of the database in which a token is found, whatever it is called."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND data_type IN ('text', 'character varying', 'bytea', 'json', 'jsonb', 'ARRAY')"
        )
        return {
            f"{table}.{column}" for table, column in cursor.fetchall() if holds_token(cursor, table, column)
        }


def holds_token(cursor: Any, table: str, column: str) -> bool:
    patterns = [f"%{TOKEN_START}%", f"%{TOKEN_START.encode().hex()}%"]
    cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}" WHERE "{column}"::text LIKE ANY (%s))', [patterns])
    return bool(cursor.fetchone()[0])


@transaction.atomic
def change_rows(model: type[Model], change: str, *, resealing: bool = False) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('qr.resealing', %s, true)", ["on" if resealing else "off"])
        cursor.execute(f"UPDATE {model._meta.db_table} SET {change}")


@pytest.mark.usefixtures("filled_database")
def test_every_sealed_column_has_sealed_suffix() -> None:
    known = {
        f"{model._meta.db_table}.{name}"
        for model, columns in resealing.sealed_columns().items()
        for name in columns
    }
    assert columns_with_tokens() == known


def test_reseal_makes_old_key_unnecessary(
    shop: Shop, filled_database: dict[str, str], settings: Settings
) -> None:
    stored = IdempotencyKey.objects.get(key="order 17").pk
    assert (opened_by(OLD), opened_by(NEW)) == (TOKENS, 0)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert "payments.Payment: 2 resealed, 0 had" in reseal()
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert (opened_by(OLD), opened_by(NEW)) == (0, TOKENS)
    assert shop.get(f"/v1/webhooks/{filled_database['webhook_id']}/secret").json()["secret"] == SECOND_SECRET
    assert Endpoint.objects.get().signing_secrets(clock.now()) == [SECOND_SECRET, FIRST_ROTATION, SECRET]
    payment, bank_transaction = Payment.objects.get(), BankTransaction.objects.get()
    assert (payment.client_bank_account, payment.payer_account) == (ACCOUNT, PAYER)
    assert bank_transaction.payer_account == PAYER
    assert PAYER.encode() in BankNotification.objects.get().body
    assert bank_transaction.statement_line.line == credit_line(filled_database, bank_transaction.paid_at)
    (connection,) = BankConnection.objects.all()
    assert bank_connections.decrypt(connection).credentials.items() >= SCB_CONFIG.credentials.items()
    again = ask(shop)
    assert (again["Idempotent-Replayed"], again.json()["client_bank_account"]) == ("true", ACCOUNT)
    assert IdempotencyKey.objects.get(key="order 17").pk == stored


@pytest.mark.usefixtures("filled_database")
def test_second_reseal_changes_nothing(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    reseal()
    sealed = set(tokens())
    assert "webhooks.Endpoint: 0 resealed, 2 had the newest key already" in reseal()
    assert set(tokens()) == sealed


@pytest.mark.usefixtures("filled_database")
def test_interrupted_reseal_continues_on_next_run(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    with pytest.raises(CommandError, match="Interrupted") as interrupted:
        reseal(CtrlC())
    assert interrupted.value.returncode == 130
    assert 0 < opened_by(NEW) < TOKENS
    reseal()
    assert opened_by(NEW) == TOKENS


def test_reseal_names_rows_that_no_key_opens(
    shop: Shop, filled_database: dict[str, str], settings: Settings
) -> None:
    lost = Payment.objects.get(pk=filled_database["payment_id"])
    token = vault.seal(PAYER, context=lost.id, keys=[vault.new_key()])
    change_rows(Payment, f"payer_account_sealed = '{token}'", resealing=True)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    for _ in range(2):
        with pytest.raises(
            CommandError, match=f"payments.Payment {lost.id} payer_account_sealed. Drop"
        ) as output:
            reseal()
        assert TOKEN_START not in str(output.value)
    # The key check is resealed last, after all other tokens.
    assert opened_by(NEW) == TOKENS - 2


@pytest.mark.parametrize("broken", ["ขยะ", "x", TOKEN_START])
def test_reseal_names_malformed_tokens(shop: Shop, settings: Settings, broken: str) -> None:
    payment = PaymentFactory.create(merchant=shop.merchant, payer_account_sealed=broken)
    with pytest.raises(CommandError, match=payment.id):
        reseal()
    assert Payment.objects.get().payer_account_sealed == broken


def test_reseal_handles_several_batches(shop: Shop, settings: Settings) -> None:
    many = PaymentFactory.build_batch(2 * resealing.BATCH_SIZE + 1, merchant=shop.merchant)
    for payment in many:
        payment.client_bank_account_sealed = vault.seal(ACCOUNT, context=payment.id, keys=[OLD])
    Payment.objects.bulk_create(many)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert f"payments.Payment: {len(many)} resealed" in reseal()
    assert {payment.client_bank_account for payment in Payment.objects.all()} == {ACCOUNT}


@pytest.mark.usefixtures("filled_database")
def test_reseal_shows_progress_only_on_terminal(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert "\r" not in reseal()
    assert f"payments.Payment [{'#' * 30}] 100 %" in reseal(Terminal())


# A change that each table allows to others, beside columns that it seals.
ALLOWED_CHANGES = {
    PayoutAccount: (
        "removed_by = 'staff:malee', removed_at = added_at",
        "an account on the list never changes",
    ),
    BankTransaction: ("slip_reference = 'S1'", "a bank transaction is kept as its bank reported it"),
    Payment: ("has_exceptions = true", "what was asked for never changes"),
    Transfer: ("inquiries = inquiries + 1", "what was ordered never changes"),
    Withdrawal: ("bank_reference = 'x'", "what was asked for never changes"),
    ClaimLink: ("used_at = created_at", "a claim link is replaced, never changed"),
}


@pytest.mark.usefixtures("filled_database")
@pytest.mark.parametrize("model", ALLOWED_CHANGES, ids=lambda model: model._meta.label)
def test_resealing_session_cannot_make_other_changes(model: type[Model]) -> None:
    change, message = ALLOWED_CHANGES[model]
    with pytest.raises(DatabaseError, match=message):
        change_rows(model, change, resealing=True)
    change_rows(model, change)


def test_read_only_tables_with_sealed_columns_are_tested() -> None:
    guarded = {
        model
        for model in resealing.sealed_columns()
        if any(isinstance(trigger, triggers.ReadOnly) for trigger in getattr(model._meta, "triggers", ()))
    }
    nothing_changes = {BankNotification, PaymentEvidence, StatementLine}  # of the latter: once it is matched
    assert guarded == {*ALLOWED_CHANGES, *nothing_changes}


@pytest.mark.usefixtures("filled_database")
@pytest.mark.parametrize(
    ("model", "attack", "message"),
    [
        (BankTransaction, "amount = amount + 1", "a bank transaction is kept as its bank reported it"),
        (BankTransaction, "match_result = 'unmatched'", "a bank transaction is matched once"),
        (BankNotification, "result = 'repeat'", "a notification of a bank never changes"),
        (BankNotification, "body_sealed = 'x', result = 'repeat'", "a notification of a bank never changes"),
    ],
)
def test_resealing_may_change_only_sealed_columns_of_bank_records(
    model: type[Model], attack: str, message: str
) -> None:
    with pytest.raises(DatabaseError, match=message):
        change_rows(model, attack, resealing=True)


@pytest.mark.usefixtures("filled_database")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BankTransaction, "a bank transaction is never deleted"),
        (BankNotification, "a notification of a bank is never deleted"),
    ],
)
def test_resealing_may_not_delete_bank_records(model: type[Model], message: str) -> None:
    with pytest.raises(DatabaseError, match=message), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL qr.resealing = 'on'")
        cursor.execute(f"DELETE FROM {model._meta.db_table}")


@pytest.mark.usefixtures("filled_database")
@pytest.mark.parametrize(
    ("model", "column", "message"),
    [
        (BankTransaction, "payer_account_sealed", "a bank transaction is kept as its bank reported it"),
        (BankNotification, "body_sealed", "a notification of a bank never changes"),
    ],
)
def test_sealed_columns_of_bank_records_are_read_only(model: type[Model], column: str, message: str) -> None:
    change_rows(model, f"{column} = 'sealed:x'", resealing=True)
    with pytest.raises(DatabaseError, match=message):
        change_rows(model, f"{column} = 'y'")


@pytest.mark.django_db(transaction=True)
def test_secret_rotated_during_reseal_is_kept(settings: Settings) -> None:
    """The token of the old key moves to the other column after the run has looked at the row."""
    shop, renewed = open_shop("Race"), Event()
    endpoint = make_endpoint(shop, secret=SECRET)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]

    def renew() -> None:
        with transaction.atomic():
            endpoints.rotate_secret(endpoint, now=clock.now(), secret=SECOND_SECRET)
            renewed.set()
            wait_until(lambda: lock_waiters() > 0, 60)

    def run() -> None:
        assert renewed.wait(60)
        reseal()

    run_concurrently(renew, run)
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    endpoint.refresh_from_db()
    assert endpoint.signing_secrets(clock.now()) == [SECOND_SECRET, SECRET]


@pytest.mark.django_db(transaction=True)
def test_concurrent_reseals_reseal_each_token_once(settings: Settings) -> None:
    shop = open_shop("Race")
    for number in range(10):
        shop.qr_code(client_bank_account=ACCOUNT, reference=str(number))
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    one, other = run_concurrently(reseal, reseal)
    counted = [
        int(line.split()[1]) for output in (one, other) for line in output.splitlines() if "payments." in line
    ]
    assert sum(counted) == 10
    assert opened_by(OLD) == 0
