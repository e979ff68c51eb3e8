"""What banks say against our records waits for staff."""

import core.columns
from django.db import migrations, models


GUARD = """
CREATE FUNCTION transfers_contradiction_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what a bank said is not rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER transfers_contradiction_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers_contradiction
    FOR EACH STATEMENT EXECUTE FUNCTION transfers_contradiction_guard();
"""
UNGUARD = """
DROP TRIGGER transfers_contradiction_guard ON transfers_contradiction;
DROP FUNCTION transfers_contradiction_guard();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("transfers", "0009_held"),
    ]

    operations = [
        migrations.CreateModel(
            name="Contradiction",
            fields=[
                (
                    "id",
                    core.columns.PublicIdKey(
                        db_collation="C", max_length=31, primary_key=True, serialize=False
                    ),
                ),
                (
                    "subject_id",
                    core.columns.PublicId(
                        db_collation="C", help_text="The order, or the card payment.", max_length=31
                    ),
                ),
                (
                    "merchant_id",
                    core.columns.PublicId(blank=True, db_collation="C", default="", max_length=31),
                ),
                ("route", models.CharField(help_text="Who says so, such as bank:sandbox.", max_length=30)),
                ("amount", models.BigIntegerField(help_text="Satang.")),
                ("state", models.CharField(help_text="How it ended here.", max_length=9)),
                ("answer", models.CharField(help_text="How it ended there.", max_length=10)),
                ("bank_reference", models.CharField(blank=True, default="", max_length=64)),
                (
                    "actor",
                    models.CharField(
                        blank=True, default="", help_text="As core.origin has it.", max_length=160
                    ),
                ),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subject_id", "state", "answer"), name="contradiction_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
