"""What a bank took and nobody here owed is the operator's loss, an account of its own."""

import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("transactions", "0008_legal_history")]

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
        migrations.AlterField(
            model_name="account",
            name="kind",
            field=models.CharField(
                choices=[
                    ("available", "Available"),
                    ("reserved", "Reserved"),
                    ("owed", "Owed"),
                    ("bank", "Bank"),
                    ("acquirer", "Acquirer"),
                    ("suspense", "Suspense"),
                    ("losses", "Losses"),
                ],
                max_length=9,
            ),
        ),
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
                ],
                max_length=19,
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["available", "reserved", "owed", "bank", "acquirer", "suspense", "losses"])
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
                        ("kind__in", ("available", "reserved", "owed")),
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
                    models.Q(("kind__in", ["available", "reserved", "suspense"]), ("settled__gte", 0)),
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
                        ],
                    )
                ),
                name="journal_fact_known",
            ),
        ),
    ]
