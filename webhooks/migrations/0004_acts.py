"""What happened to endpoints is written once: no act changes or goes. Emptying whole tables is the owner's."""

import django.db.models.deletion
from django.db import migrations, models

GUARD = """
CREATE FUNCTION webhooks_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what happened to a webhook is not rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER webhooks_guard BEFORE UPDATE OR DELETE ON webhooks_endpointact
    FOR EACH ROW EXECUTE FUNCTION webhooks_guard();
"""
UNGUARD = "DROP TRIGGER webhooks_guard ON webhooks_endpointact; DROP FUNCTION webhooks_guard();"


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0003_health"),
    ]

    operations = [
        migrations.AlterField(
            model_name="endpoint",
            name="disabled_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("merchant", "Merchant"),
                    ("gone", "Gone"),
                    ("failing", "Failing"),
                    ("staff", "Staff"),
                ],
                default="",
                max_length=40,
            ),
        ),
        migrations.CreateModel(
            name="EndpointAct",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "act",
                    models.CharField(
                        choices=[
                            ("created", "Created"),
                            ("url_changed", "Url Changed"),
                            ("events_changed", "Events Changed"),
                            ("secret_renewed", "Secret Renewed"),
                            ("disabled", "Disabled"),
                            ("enabled", "Enabled"),
                            ("paused", "Paused"),
                            ("tried", "Tried"),
                            ("resumed", "Resumed"),
                            ("replayed", "Replayed"),
                            ("deleted", "Deleted"),
                        ],
                        max_length=14,
                    ),
                ),
                (
                    "detail",
                    models.TextField(
                        blank=True, default="", help_text="Why, or what was before. Never a secret."
                    ),
                ),
                (
                    "actor",
                    models.CharField(help_text="merchant, system or staff:<username>.", max_length=160),
                ),
                ("at", models.DateTimeField()),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="acts",
                        to="webhooks.endpoint",
                    ),
                ),
            ],
            options={
                "verbose_name": "act",
                "indexes": [models.Index(fields=["endpoint", "-id"], name="act_newest_first")],
            },
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
