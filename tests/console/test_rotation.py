"""A new encryption key takes the place of an old one, everywhere, while the service runs."""

import io
from threading import Event
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings

from approvals import payout_accounts
from console import encryption, resealing
from core import clock, crypto
from idempotency.models import IdempotencyKey
from merchants import links
from merchants.models import BankLink
from payments.models import Payment
from receipts.models import Notice, Receipt
from sandbox import orders
from tests.conftest import BankCaller, Shop, open_shop
from tests.factories import PaymentFactory
from tests.merchants.cast import TERMS
from tests.receipts.statements.cast import bot, line_of, load
from tests.stack import wait_until
from tests.threads import at_once
from tests.webhooks.cast import SECRET, make_endpoint
from tests.withdrawals.cast import withdrawn
from webhooks import endpoints
from webhooks.models import Endpoint

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
ACCOUNT, PAYER = "7412589630", "3698521470"
SECOND_SECRET = "whsec_YSBzZWNyZXQgdGhhdCB0YWtlcyB0aGUgcGxhY2Ugb2Ygb25l"
# Version and time of a Fernet token: what every one of this century begins with.
TOKEN_START = "gAAAAA"
TOKENS = 14  # what `lived_in` seals, one in each column


class Terminal(io.StringIO):
    """Somebody watches."""

    def isatty(self) -> bool:
        return True


class CtrlC(Terminal):
    """Somebody who has seen enough once a table is through."""

    def write(self, text: str) -> int:
        if "resealed" in text:
            raise KeyboardInterrupt
        return super().write(text)


@pytest.fixture(autouse=True)
def old_key(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    settings.WEBHOOK_PROBE = "off"


@pytest.fixture
def lived_in(shop: Shop, bank: BankCaller) -> dict[str, str]:
    """Something in every sealed column; returns the webhook and the code."""
    encryption.write_key_check()
    hook = {"url": "https://shop.example/hook", "events": ["payment.succeeded"], "secret": SECRET}
    webhook: dict[str, str] = shop.post("/v1/webhooks", hook).json()
    shop.post(f"/v1/webhooks/{webhook['webhook_id']}/secret/rotate", {"secret": SECOND_SECRET})
    code: dict[str, str] = ask(shop).json()
    assert bank.tell(code, payer_account=PAYER).status_code == 200
    load(bot(line_of(code, Receipt.objects.get().paid_at)))
    withdrawal_id = withdrawn(shop, bank_account=ACCOUNT)["withdrawal_id"]
    ordered = orders.Asked(withdrawal_id, "payout", 100_000, "014", ACCOUNT, "สมชาย ใจดี")
    orders.take(ordered, now=clock.now())
    payout_accounts.add(
        shop.merchant,
        bank_code="014",
        bank_account=ACCOUNT,
        account_name="Somchai",
        by="staff:malee",
        now=clock.now(),
    )
    live = open_shop("Khao Soi", mode="live").merchant
    links.connect(merchant_id=live.id, terms=TERMS, now=clock.now())
    return webhook | code


def ask(shop: Shop) -> Any:
    body = {"amount": 150_000, "currency": "THB", "client_bank_account": ACCOUNT}
    return shop.post("/v1/qr-codes", body, key="order 17")


def reseal(stream: io.StringIO | None = None) -> str:
    written = stream or io.StringIO()
    call_command("reseal", stdout=written)
    return written.getvalue()


def tokens() -> list[str]:
    return [
        value if isinstance(value, str) else bytes(value).decode()
        for model, columns in resealing.tables().items()
        for row in model._base_manager.values_list(*columns)
        for value in row
        if value
    ]


def opened_by(key: str) -> int:
    return sum(crypto.is_newest(token, [key]) for token in tokens())


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


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database())"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.usefixtures("lived_in")
def test_every_column_that_holds_tokens_is_known_by_its_name() -> None:
    known = {
        f"{model._meta.db_table}.{name}" for model, columns in resealing.tables().items() for name in columns
    }
    assert columns_with_tokens() == known


def test_the_old_key_opens_nothing_any_more_and_nothing_needs_it(
    shop: Shop, lived_in: dict[str, str], settings: Settings
) -> None:
    stored = IdempotencyKey.objects.get(key="order 17").pk
    assert (opened_by(OLD), opened_by(NEW)) == (TOKENS, 0)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert "payments.Payment: 2 resealed, 0 had" in reseal()
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert (opened_by(OLD), opened_by(NEW)) == (0, TOKENS)
    assert shop.get(f"/v1/webhooks/{lived_in['webhook_id']}/secret").json()["secret"] == SECOND_SECRET
    assert Endpoint.objects.get().secrets_at(clock.now()) == [SECOND_SECRET, SECRET]
    payment, receipt = Payment.objects.get(), Receipt.objects.get()
    assert (payment.client_bank_account, payment.payer_account) == (ACCOUNT, PAYER)
    assert receipt.payer_account == PAYER
    assert PAYER.encode() in Notice.objects.get().body
    assert receipt.statement_line.line == line_of(lived_in, receipt.paid_at)
    (link,) = BankLink.objects.all()
    assert links.opened(link).credentials.items() >= TERMS.credentials.items()
    again = ask(shop)
    assert (again["Idempotent-Replayed"], again.json()["client_bank_account"]) == ("true", ACCOUNT)
    assert IdempotencyKey.objects.get(key="order 17").pk == stored


@pytest.mark.usefixtures("lived_in")
def test_a_second_run_finds_nothing_to_do(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    reseal()
    sealed = sorted(tokens())
    assert "webhooks.Endpoint: 0 resealed, 2 had the newest key already" in reseal()
    assert sorted(tokens()) == sealed


@pytest.mark.usefixtures("lived_in")
def test_an_interrupted_run_keeps_what_it_did_and_the_next_one_ends_it(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    with pytest.raises(CommandError, match="Interrupted") as interrupted:
        reseal(CtrlC())
    assert interrupted.value.returncode == 130
    assert 0 < opened_by(NEW) < TOKENS
    reseal()
    assert opened_by(NEW) == TOKENS


def test_a_row_that_no_key_opens_is_named_and_holds_up_no_other(
    shop: Shop, lived_in: dict[str, str], settings: Settings
) -> None:
    lost = Payment.objects.get(pk=lived_in["payment_id"])
    Payment.objects.update(
        payer_account_sealed=crypto.seal(PAYER, context=lost.id, keys=[Fernet.generate_key().decode()])
    )
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    for _ in range(2):
        with pytest.raises(
            CommandError, match=f"payments.Payment {lost.id} payer_account_sealed. Drop"
        ) as said:
            reseal()
        assert TOKEN_START not in str(said.value)
    # The key check too waits until everything is resealed.
    assert opened_by(NEW) == TOKENS - 2


@pytest.mark.parametrize("broken", ["ขยะ", "x", TOKEN_START])
def test_what_is_no_token_is_named_as_well(shop: Shop, settings: Settings, broken: str) -> None:
    payment = PaymentFactory.create(merchant=shop.merchant, payer_account_sealed=broken)
    with pytest.raises(CommandError, match=payment.id):
        reseal()
    assert Payment.objects.get().payer_account_sealed == broken


def test_more_rows_than_one_batch_are_all_resealed(shop: Shop, settings: Settings) -> None:
    many = PaymentFactory.build_batch(2 * resealing.AT_ONCE + 1, merchant=shop.merchant)
    for payment in many:
        payment.client_bank_account_sealed = crypto.seal(ACCOUNT, context=payment.id, keys=[OLD])
    Payment.objects.bulk_create(many)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert f"payments.Payment: {len(many)} resealed" in reseal()
    assert {payment.client_bank_account for payment in Payment.objects.all()} == {ACCOUNT}


@pytest.mark.usefixtures("lived_in")
def test_only_a_terminal_is_shown_a_bar(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert "\r" not in reseal()
    assert f"payments.Payment [{'#' * 30}] 100 %" in reseal(Terminal())


@pytest.mark.usefixtures("lived_in")
@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE receipts_receipt SET amount = amount + 1",
        "UPDATE receipts_receipt SET outcome = 'unmatched'",
        "DELETE FROM receipts_receipt",
        "UPDATE receipts_notice SET verdict = 'repeat'",
        "DELETE FROM receipts_notice",
    ],
)
def test_resealing_may_change_nothing_else_of_a_banks_word(attack: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL qr.resealing = 'on'")
        with pytest.raises(DatabaseError, match="as it was said"), transaction.atomic():
            cursor.execute(attack)


@pytest.mark.usefixtures("lived_in")
@pytest.mark.parametrize("column", ["receipts_receipt.payer_account_sealed", "receipts_notice.body_sealed"])
def test_nobody_else_changes_a_banks_sealed_word(column: str) -> None:
    table, name = column.split(".")
    with pytest.raises(DatabaseError, match="as it was said"), transaction.atomic():
        connection.cursor().execute(f"UPDATE {table} SET {name} = 'x'")


@pytest.mark.django_db(transaction=True)
def test_a_secret_that_is_renewed_meanwhile_is_kept_and_resealed(settings: Settings) -> None:
    """The token of the old key moves to the other column after the run has looked at the row."""
    shop, renewed = open_shop("Race"), Event()
    endpoint = make_endpoint(shop, secret=SECRET)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]

    def renew() -> None:
        with transaction.atomic():
            endpoints.renew_secret(
                merchant=shop.merchant, webhook_id=endpoint.id, now=clock.now(), secret=SECOND_SECRET
            )
            renewed.set()
            wait_until(somebody_waits_for_a_lock, 60)

    def run() -> None:
        assert renewed.wait(60)
        reseal()

    at_once(renew, run)
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    endpoint.refresh_from_db()
    assert endpoint.secrets_at(clock.now()) == [SECOND_SECRET, SECRET]


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_reseal_each_token_once(settings: Settings) -> None:
    shop = open_shop("Race")
    for number in range(10):
        shop.qr_code(client_bank_account=ACCOUNT, reference=str(number))
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    one, other = at_once(reseal, reseal)
    counted = [
        int(line.split()[1]) for said in (one, other) for line in said.splitlines() if "payments." in line
    ]
    assert sum(counted) == 10
    assert opened_by(OLD) == 0
