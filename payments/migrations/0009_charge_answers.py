"""What acquirers were asked and said of charges, kept as it was said; and who asked for a charge."""

import django.db.models.deletion
from django.db import migrations, models


GUARD = """
CREATE FUNCTION payments_said() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what an acquirer said is kept as it was said' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER payments_said BEFORE UPDATE OR DELETE OR TRUNCATE ON payments_chargeanswer
    FOR EACH STATEMENT EXECUTE FUNCTION payments_said();
CREATE FUNCTION payments_keep_asked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'who asked for a charge never changes' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER payments_keep_asked BEFORE UPDATE OF asked_by, asked_request_id ON payments_cardcharge
    FOR EACH ROW
    WHEN ((NEW.asked_by, NEW.asked_request_id) IS DISTINCT FROM (OLD.asked_by, OLD.asked_request_id))
    EXECUTE FUNCTION payments_keep_asked();
"""
UNGUARD = """
DROP TRIGGER payments_keep_asked ON payments_cardcharge;
DROP FUNCTION payments_keep_asked();
DROP TRIGGER payments_said ON payments_chargeanswer;
DROP FUNCTION payments_said();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0008_keep_bank"),
    ]

    operations = [
        migrations.AddField(
            model_name="cardcharge",
            name="asked_by",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="As core.origin has it.", max_length=160
            ),
        ),
        migrations.AddField(
            model_name="cardcharge",
            name="asked_request_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.CreateModel(
            name="ChargeAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "said",
                    models.CharField(
                        choices=[
                            ("succeeded", "Succeeded"),
                            ("declined", "Declined"),
                            ("refused", "Refused"),
                            ("pending", "Pending"),
                            ("unknown", "Unknown"),
                            ("not_sent", "Not Sent"),
                            ("missing", "Missing"),
                        ],
                        max_length=9,
                    ),
                ),
                ("took_ms", models.IntegerField()),
                ("at", models.DateTimeField()),
                (
                    "request_id",
                    models.CharField(
                        blank=True, default="", help_text="Of the task that asked.", max_length=64
                    ),
                ),
                (
                    "charge",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="payments.cardcharge",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["charge", "at"], name="chargeanswer_of_charge")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "said__in",
                                [
                                    "succeeded",
                                    "declined",
                                    "refused",
                                    "pending",
                                    "unknown",
                                    "not_sent",
                                    "missing",
                                ],
                            )
                        ),
                        name="chargeanswer_said_known",
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
