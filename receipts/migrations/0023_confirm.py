"""Money that only an uploaded statement reports cannot leave until the bank or a second person confirms it."""

from django.db import migrations, models

CREDITED = "(NEW.outcome = 'applied' OR NEW.resolution IN ('accepted', 'attached'))"
CREDITED_NOW = CREDITED.replace("NEW.", "receipt.")
# The function has been changed by several migrations: this one adds a column that may change.
MAY_CHANGE = """
DO $$ BEGIN
    EXECUTE replace(pg_get_functiondef('receipts_guard()'::regprocedure), '{}', '{}');
END $$;
"""
# What was credited before stays credited: that it was is written down once.
BEFORE = """
INSERT INTO receipts_act (subject_id, deed, by, why, payment_id, round, request_id, at)
SELECT id, 'confirmed', 'migration', 'Credited before money of statements had to be confirmed.',
    payment_id, 0, '', now()
FROM receipts_receipt AS receipt
WHERE source = 'statement' AND kind = 'credit' AND NOT EXISTS (
    SELECT FROM receipts_notice WHERE receipt_id = receipt.id AND source IN ('callback', 'inquiry')
        AND verdict IN ('new', 'repeat')
);
"""
GUARD = f"""
CREATE FUNCTION receipts_guard_confirmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'only the bank or a second person confirms money' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER receipts_statement_confirms_nothing BEFORE INSERT ON receipts_receipt FOR EACH ROW
    WHEN (NEW.source = 'statement' AND NEW.kind = 'credit' AND NEW.is_confirmed)
    EXECUTE FUNCTION receipts_guard_confirmed();
CREATE TRIGGER receipts_confirmed_for_good BEFORE UPDATE OF is_confirmed ON receipts_receipt FOR EACH ROW
    WHEN (OLD.is_confirmed AND NOT NEW.is_confirmed)
    EXECUTE FUNCTION receipts_guard_confirmed();

-- At the commit: by then the money has moved.
CREATE FUNCTION receipts_guard_unconfirmed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    receipt receipts_receipt%ROWTYPE;
    held bigint;
BEGIN
    SELECT * INTO receipt FROM receipts_receipt WHERE id = NEW.id;
    IF receipt.is_confirmed AND NOT EXISTS (
        SELECT FROM receipts_notice WHERE receipt_id = receipt.id AND source IN ('callback', 'inquiry')
            AND verdict IN ('new', 'repeat')
    ) AND NOT EXISTS (SELECT FROM receipts_act WHERE subject_id = receipt.id AND deed = 'confirmed') THEN
        RAISE EXCEPTION 'nobody confirmed %', receipt.id USING ERRCODE = 'check_violation';
    END IF;
    SELECT coalesce(sum(entry.amount), 0) INTO held
    FROM transactions_journal AS journal JOIN transactions_entry AS entry ON entry.journal_id = journal.id
    WHERE entry.account_id = 'unconfirmed:' || receipt.merchant_id
        AND journal.fact IN ('payment', 'confirmed', 'reversal')
        AND journal.subject_id = ANY (
            ARRAY[receipt.payment_id, receipt.id]
            || ARRAY(SELECT reversal_id FROM refunds_takeback WHERE payment_id = receipt.payment_id)
        );
    IF {CREDITED_NOW} AND held <> (CASE WHEN receipt.is_confirmed THEN 0 ELSE receipt.amount - (
        SELECT coalesce(sum(amount), 0) FROM refunds_takeback WHERE payment_id = receipt.payment_id
    ) END) THEN
        RAISE EXCEPTION 'the money of % is % of its merchant', receipt.id, held USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER receipts_credited_unconfirmed
    AFTER UPDATE OF outcome, resolution, is_confirmed ON receipts_receipt
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NOT NEW.is_confirmed AND {CREDITED})
    EXECUTE FUNCTION receipts_guard_unconfirmed();
CREATE CONSTRAINT TRIGGER receipts_confirmed AFTER UPDATE OF is_confirmed ON receipts_receipt
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.is_confirmed AND NOT OLD.is_confirmed)
    EXECUTE FUNCTION receipts_guard_unconfirmed();

CREATE FUNCTION receipts_guard_confirmation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM receipts_statementline AS line JOIN receipts_statement AS statement
            ON statement.id = line.statement_id
        WHERE line.receipt_id = NEW.subject_id AND statement.imported_by = NEW."by"
    ) THEN
        RAISE EXCEPTION '% uploaded what % reports', NEW."by", NEW.subject_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_second_person_confirms BEFORE INSERT ON receipts_act FOR EACH ROW
    WHEN (NEW.deed = 'confirmed') EXECUTE FUNCTION receipts_guard_confirmation();

CREATE FUNCTION receipts_guard_posting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM receipts_receipt WHERE id = NEW.subject_id AND is_confirmed) THEN
        RAISE EXCEPTION 'nobody confirmed %', NEW.subject_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_confirmed_is_posted AFTER INSERT ON transactions_journal FOR EACH ROW
    WHEN (NEW.fact = 'confirmed') EXECUTE FUNCTION receipts_guard_posting();

CREATE FUNCTION receipts_guard_return_confirmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM receipts_receipt WHERE id = NEW.receipt_id AND NOT is_confirmed) THEN
        RAISE EXCEPTION 'unconfirmed money cannot leave' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_returns_confirmed_money BEFORE INSERT ON receipts_return FOR EACH ROW
    EXECUTE FUNCTION receipts_guard_return_confirmed();
"""  # noqa: S608
UNGUARD = """
DROP TRIGGER receipts_returns_confirmed_money ON receipts_return;
DROP FUNCTION receipts_guard_return_confirmed();
DROP TRIGGER receipts_confirmed_is_posted ON transactions_journal;
DROP FUNCTION receipts_guard_posting();
DROP TRIGGER receipts_second_person_confirms ON receipts_act;
DROP FUNCTION receipts_guard_confirmation();
DROP TRIGGER receipts_confirmed ON receipts_receipt;
DROP TRIGGER receipts_credited_unconfirmed ON receipts_receipt;
DROP FUNCTION receipts_guard_unconfirmed();
DROP TRIGGER receipts_confirmed_for_good ON receipts_receipt;
DROP TRIGGER receipts_statement_confirms_nothing ON receipts_receipt;
DROP FUNCTION receipts_guard_confirmed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_bank_links"),
        ("payments", "0009_charge_answers"),
        ("receipts", "0022_approvals"),
        ("refunds", "0005_takebacks"),
        ("transactions", "0011_unconfirmed"),
    ]

    operations = [
        # All that ever came is looked at, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.AlterModelOptions(
            name="receipt",
            options={
                "permissions": [
                    ("resolve_receipt", "Can decide what becomes of money that waits"),
                    ("confirm_receipt", "Can confirm money that only a statement reports"),
                ]
            },
        ),
        migrations.RemoveConstraint(
            model_name="act",
            name="act_deed_known",
        ),
        migrations.AddField(
            model_name="receipt",
            name="is_confirmed",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="No: only an uploaded statement reports this money, and it cannot leave.",
            ),
        ),
        migrations.AlterField(
            model_name="act",
            name="deed",
            field=models.CharField(
                choices=[
                    ("accepted", "Accepted"),
                    ("attached", "Attached"),
                    ("sent_back", "Sent Back"),
                    ("sent_back_by_hand", "Sent Back By Hand"),
                    ("dismissed", "Dismissed"),
                    ("kept", "Kept"),
                    ("lost", "Lost"),
                    ("reopened", "Reopened"),
                    ("confirmed", "Confirmed"),
                ],
                max_length=17,
            ),
        ),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(
                condition=models.Q(("is_confirmed", False)),
                fields=["received_at"],
                name="receipt_not_confirmed",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "deed__in",
                        [
                            "accepted",
                            "attached",
                            "sent_back",
                            "sent_back_by_hand",
                            "dismissed",
                            "kept",
                            "lost",
                            "reopened",
                            "confirmed",
                        ],
                    )
                ),
                name="act_deed_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deed", "confirmed")),
                fields=("subject_id",),
                name="act_confirms_a_subject_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="receipt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("is_confirmed", True),
                    models.Q(("kind", "credit"), ("source", "statement")),
                    _connector="OR",
                ),
                name="receipt_unconfirmed_is_of_a_statement",
            ),
        ),
        migrations.RunSQL(
            MAY_CHANGE.format("also_known_as,", "also_known_as,is_confirmed,"),
            MAY_CHANGE.format("also_known_as,is_confirmed,", "also_known_as,"),
        ),
        migrations.RunSQL(BEFORE, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
