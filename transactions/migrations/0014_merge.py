"""Money that was counted twice leaves suspense, and comes back where that was a mistake."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("transactions", "0013_sandbox_suspense"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="journal",
            name="journal_fact_known",
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
                    ("merged", "Merged"),
                    ("unmerged", "Unmerged"),
                    ("lost", "Lost"),
                    ("recovered", "Recovered"),
                    ("confirmed", "Confirmed"),
                ],
                max_length=19,
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
                            "merged",
                            "unmerged",
                            "lost",
                            "recovered",
                            "confirmed",
                        ],
                    )
                ),
                name="journal_fact_known",
            ),
        ),
    ]
