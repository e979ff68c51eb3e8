"""The steps of transfers, written once. Of those before, what the transfers themselves say."""

import django.db.models.deletion
from django.db import migrations, models


KNOWN = """
INSERT INTO transfers_step (transfer_id, what, said, actor, request_id, at)
SELECT * FROM (
    SELECT id, 'queued', '', '', '', created_at FROM transfers_transfer
    UNION ALL
    SELECT id, 'told', '', '', '', told_at FROM transfers_transfer WHERE told_at IS NOT NULL
    UNION ALL
    SELECT id, state, '', CASE settled_by WHEN '' THEN '' ELSE 'staff:' || settled_by END, '', ended_at
    FROM transfers_transfer WHERE ended_at IS NOT NULL
) step (id, what, said, actor, request_id, at)
ORDER BY at, id;
"""
GUARD = """
CREATE FUNCTION transfers_step_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what happened to a transfer is not rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER transfers_step_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers_step
    FOR EACH STATEMENT EXECUTE FUNCTION transfers_step_guard();
"""
UNGUARD = """
DROP TRIGGER transfers_step_guard ON transfers_step;
DROP FUNCTION transfers_step_guard();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("transfers", "0006_of_charge"),
    ]

    operations = [
        # Of each transfer that ever was, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Step",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("told", "Told"),
                            ("unreached", "Unreached"),
                            ("inquiry", "Inquiry"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("returned", "Returned"),
                            ("canceled", "Canceled"),
                        ],
                        max_length=9,
                    ),
                ),
                (
                    "said",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="By the bank that was asked, such as processing.",
                        max_length=10,
                    ),
                ),
                (
                    "actor",
                    models.CharField(
                        blank=True, default="", help_text="As core.origin has it.", max_length=160
                    ),
                ),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("at", models.DateTimeField()),
                (
                    "transfer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="steps",
                        to="transfers.transfer",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["transfer", "what", "at"], name="step_of_transfer")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "what__in",
                                [
                                    "queued",
                                    "told",
                                    "unreached",
                                    "inquiry",
                                    "succeeded",
                                    "failed",
                                    "returned",
                                    "canceled",
                                ],
                            )
                        ),
                        name="step_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("what", "inquiry"), models.Q(("said", ""), _negated=True)),
                            models.Q(models.Q(("what", "inquiry"), _negated=True), ("said", "")),
                            _connector="OR",
                        ),
                        name="step_said_iff_asked",
                    ),
                ],
            },
        ),
        migrations.RunSQL(KNOWN, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
