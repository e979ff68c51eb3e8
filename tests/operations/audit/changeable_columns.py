"""What the role of web and workers can change in rows about money, tried on each column and each row."""

from collections import defaultdict

from django.db import connection

from tests.examples import FACTOR
from tests.sqlstates import as_application

# All else in these tables never changes, or only together with the state of the row. A column in this list is
# what a program that is broken into can change: say here why that is no danger.
CHANGEABLE = {
    "approvals_approval": set(),
    "approvals_payoutaccount": set(),
    "ledger_account": set(),
    # What was received is set with the end. The audit compares the mark with the exceptions. The copy of the
    # payer is for showing, is filled once, and the audit compares it with the bank transaction.
    "payments_payment": {
        *("amount_received", "has_exceptions"),
        *("payer_name", "payer_bank_code", "payer_account_sealed", "bank_reference"),
        *("card_last4", "card_brand", "failure_code", "authorize_uri", "expires_at", "updated_at"),
        "settlement_id",  # the audit compares it with the settlement
    },
    "links_linkcode": set(),
    "links_paymentlink": {"expires_at"},  # the test clock brings it forward
    # When the acquirer is asked next; its id is set once. While it is open: its end sets the time.
    "payments_cardcharge": {
        "charge_id",
        "due_at",
        "inquiries",
        "paid_at",
        "returned_at",
        "awaits_fee",
        "unsettled",
    },
    "qrcodes_qrcode": {"actor", "request_id"},  # who expires it, once
    "reconciliation_banknotification": set(),
    # Once: a later report may add them. An account needs its digest in the same statement.
    "reconciliation_banktransaction": {
        *("later_bank_reference", "payer_account_digest", "slip_reference"),
    },
    "reconciliation_excess": set(),
    "reconciliation_return": {"bank_reference", "returned_at"},  # while it is pending, and once
    # Once, when the fee was compared with its payment: the audit compares both.
    "reconciliation_statementline": {"is_fee_due"},
    # An account is set once, with the route. The order is sent only if its digest is the same.
    "refunds_refund": {
        *("account_digest", "awaiting_approval", "cancel_actor", "cancel_request_id", "returned_at"),
        *("route", "updated_at"),
    },
    "refunds_refundreversal": set(),
    "settlements_acquirertransfer": {"bank_transaction_id"},  # once, and the audit compares it
    # Who closed a question is in the audit trail. The audit compares what is booked with the ledger.
    "settlements_openquestion": {"closed_at"},
    "settlements_settleditem": {"awaits_result"},  # while it awaits it: the audit counts it
    # Once, as that of its transfer. What differs has a question.
    "settlements_settlement": {"arrived_at", "differs"},
    "transactions_transaction": set(),
    # While it is open: when it is sent or inquired, and what the bank answered.
    "transfers_transfer": {"bank_reference", "due_at", "inquiries", "lease_until", "submitted_at"},
    "withdrawals_withdrawal": {"awaiting_approval", "bank_reference", "updated_at"},  # while it is open
}
COLUMNS = """
SELECT table_name, column_name, CASE
    WHEN data_type IN ('bigint', 'integer', 'smallint') THEN ARRAY[format('%%I + 1', column_name), '0']
    WHEN data_type = 'boolean' THEN ARRAY[format('NOT %%I', column_name)]
    WHEN data_type LIKE 'timestamp%%' THEN ARRAY[format('%%I - interval ''1 day''', column_name), 'now()']
    WHEN data_type = 'date' THEN ARRAY[format('%%I - 1', column_name)]
    WHEN data_type = 'json' THEN ARRAY['''{"other": 1}''']
    WHEN column_name LIKE '%%\\_sealed' THEN ARRAY['''sealed:other''', '''other''']
    ELSE ARRAY['''x''', '''002''', format('reverse(%%I)', column_name)]
END FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ANY(%s)
"""
# How many rows of one kind are tried: all with EXAMPLES_FACTOR=1.
EACH = 2 if FACTOR < 1 else 1_000_000
# Whether a row takes the value: EACH of a state, source and set of filled columns. It is taken back.
CAN_CHANGE = f"""
CREATE FUNCTION pg_temp.can_change(counted text, name text, value text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    place tid;
BEGIN
    FOR place IN EXECUTE
        format('SELECT id FROM (SELECT ctid AS id, row_number() OVER (PARTITION BY '
            'doc->>''status'', doc->>''source'', doc->>''match_result'', doc->>''resolution_state'', '
            'ARRAY(SELECT key FROM jsonb_each_text(doc) WHERE value <> '''')) AS number '
            'FROM %I AS r, to_jsonb(r) AS doc WHERE %I::text IS DISTINCT FROM (%s)::text) AS numbered '
            'WHERE number <= {EACH}', counted, name, value)
    LOOP
        BEGIN
            EXECUTE format('UPDATE %I SET %I = %s WHERE ctid = $1', counted, name, value) USING place;
            RAISE EXCEPTION USING ERRCODE = 'QR001';
        EXCEPTION WHEN SQLSTATE 'QR001' THEN RETURN true; WHEN OTHERS THEN NULL;
        END;
    END LOOP;
    RETURN false;
END $$
"""


def changeable(setting: str = "") -> dict[str, set[str]]:
    """The columns that take another value that is not empty, by table, while this setting is on."""
    found: dict[str, set[str]] = defaultdict(set)
    with as_application(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        if setting:
            cursor.execute(f"SET LOCAL qr.{setting} = 'on'")
        cursor.execute(CAN_CHANGE)
        cursor.execute(COLUMNS, [list(CHANGEABLE)])
        for table, column, values in cursor.fetchall():
            cursor.execute(
                "SELECT bool_or(pg_temp.can_change(%s, %s, value)) FROM unnest(%s::text[]) AS value",
                [table, column, values],
            )
            if cursor.fetchone()[0]:
                found[table].add(column)
        cursor.execute("DROP FUNCTION pg_temp.can_change")
        cursor.execute("SELECT set_config('qr.erasing', '', true), set_config('qr.resealing', '', true)")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    return found


def check_changeable_columns() -> None:
    """What the application changes beside its procedures is CHANGEABLE, and no setting allows more."""
    plain = changeable()
    wanted = {table: names for table, names in CHANGEABLE.items() if names}
    assert plain == wanted, (plain, wanted)
    for table, names in changeable("erasing").items():
        assert names <= plain[table], table
    for table, names in changeable("resealing").items():
        # A token, and the fingerprint that finds it, may be others. The content is compared with its digest.
        others = {name for name in names if not name.endswith(("_sealed", "_fingerprint"))}
        assert others <= plain[table], table
