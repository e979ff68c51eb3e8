"""Money that only an uploaded statement reports has an account of its own, out of which nothing is paid."""

import django.db.models.functions.text
from django.db import migrations, models

GUARD = """
CREATE FUNCTION ledger_keeps_unconfirmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM transactions_journal WHERE id = NEW.journal_id AND fact IN ('confirmed', 'reversal')
    ) THEN
        RAISE EXCEPTION 'unconfirmed money cannot leave' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_keeps_unconfirmed AFTER INSERT ON transactions_entry FOR EACH ROW
    WHEN (NEW.amount < 0 AND starts_with(NEW.account_id, 'unconfirmed:'))
    EXECUTE FUNCTION ledger_keeps_unconfirmed();
"""
UNGUARD = """
DROP TRIGGER ledger_keeps_unconfirmed ON transactions_entry;
DROP FUNCTION ledger_keeps_unconfirmed();
"""
# PostgreSQL changes no column that a trigger names.
UNKEEP = "DROP TRIGGER ledger_kept ON transactions_account;"
KEEP = """
CREATE TRIGGER ledger_kept BEFORE UPDATE OF id, kind, merchant_id OR DELETE OR TRUNCATE ON transactions_account
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_kept();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_bank_links"),
        ("transactions", "0010_fold_by_trigger"),
    ]

    operations = [
        # Millions of rows are looked at, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="account",
            name="account_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="account",
            name="account_code_says_whose",
        ),
        migrations.RemoveConstraint(
            model_name="account",
            name="account_not_overdrawn",
        ),
        migrations.RemoveConstraint(
            model_name="journal",
            name="journal_fact_known",
        ),
        migrations.RemoveConstraint(
            model_name="unfolded",
            name="unfolded_never_takes",
        ),
        migrations.RunSQL(UNKEEP, KEEP),
        migrations.AlterField(
            model_name="account",
            name="kind",
            field=models.CharField(
                choices=[
                    ("available", "Available"),
                    ("reserved", "Reserved"),
                    ("owed", "Owed"),
                    ("unconfirmed", "Unconfirmed"),
                    ("bank", "Bank"),
                    ("acquirer", "Acquirer"),
                    ("suspense", "Suspense"),
                    ("losses", "Losses"),
                ],
                max_length=11,
            ),
        ),
        migrations.RunSQL(KEEP, UNKEEP),
        migrations.AlterField(
            model_name="journal",
            name="fact",
            field=models.CharField(
                choices=[
                    ("payment", "Payment"),
                    ("refund_reserved", "Refund Reserved"),
                    ("refund_paid", "Refund Paid"),
                    ("refund_released", "Refund Released"),
                    ("withdrawal_reserved", "Withdrawal Reserved"),
                    ("withdrawal_paid", "Withdrawal Paid"),
                    ("withdrawal_released", "Withdrawal Released"),
                    ("withdrawal_returned", "Withdrawal Returned"),
                    ("reversal", "Reversal"),
                    ("owed_filled", "Owed Filled"),
                    ("held", "Held"),
                    ("accepted", "Accepted"),
                    ("sent_back", "Sent Back"),
                    ("lost", "Lost"),
                    ("recovered", "Recovered"),
                    ("confirmed", "Confirmed"),
                ],
                max_length=19,
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "available",
                            "reserved",
                            "owed",
                            "unconfirmed",
                            "bank",
                            "acquirer",
                            "suspense",
                            "losses",
                        ],
                    )
                ),
                name="account_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        (
                            "id",
                            django.db.models.functions.text.Concat(
                                models.F("kind"),
                                models.Value(":"),
                                models.F("merchant_id"),
                                output_field=models.TextField(),
                            ),
                        ),
                        ("kind__in", ("available", "reserved", "owed", "unconfirmed")),
                        ("merchant__isnull", False),
                    ),
                    models.Q(("id__regex", "^bank:."), ("kind", "bank"), ("merchant__isnull", True)),
                    models.Q(("id__regex", "^acquirer:."), ("kind", "acquirer"), ("merchant__isnull", True)),
                    models.Q(("id", "suspense"), ("kind", "suspense"), ("merchant__isnull", True)),
                    models.Q(("id", "losses"), ("kind", "losses"), ("merchant__isnull", True)),
                    _connector="OR",
                ),
                name="account_code_says_whose",
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind__in", ["available", "reserved", "unconfirmed", "suspense"]),
                        ("settled__gte", 0),
                    ),
                    models.Q(("kind__in", ["owed", "losses"]), ("settled__lte", 0)),
                    ("kind__in", ("bank", "acquirer")),
                    _connector="OR",
                ),
                name="account_not_overdrawn",
            ),
        ),
        migrations.AddConstraint(
            model_name="journal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "fact__in",
                        [
                            "payment",
                            "refund_reserved",
                            "refund_paid",
                            "refund_released",
                            "withdrawal_reserved",
                            "withdrawal_paid",
                            "withdrawal_released",
                            "withdrawal_returned",
                            "reversal",
                            "owed_filled",
                            "held",
                            "accepted",
                            "sent_back",
                            "lost",
                            "recovered",
                            "confirmed",
                        ],
                    )
                ),
                name="journal_fact_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="unfolded",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("account_id__regex", "^(bank|acquirer):"),
                    models.Q(
                        ("account_id__regex", "^(available:|unconfirmed:|suspense$)"), ("amount__gt", 0)
                    ),
                    _connector="OR",
                ),
                name="unfolded_never_takes",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
