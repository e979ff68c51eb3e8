"""An order may be held until it is approved: it is born held, and is queued or canceled from there."""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("transfers.migrations.0004_returns")
GUARD = BEFORE.GUARD.replace(
    "IF NEW.state <> 'queued' THEN", "IF NEW.state NOT IN ('held', 'queued') THEN"
).replace(
    "'queued>told', 'queued>canceled'", "'held>queued', 'held>canceled', 'queued>told', 'queued>canceled'"
)


class Migration(migrations.Migration):
    dependencies = [
        ("transfers", "0008_circuit_breakers"),
    ]

    operations = [
        # Constraints of each transfer that ever was are judged anew.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="step",
            name="step_known",
        ),
        migrations.RemoveConstraint(
            model_name="transfer",
            name="transfer_state_known",
        ),
        migrations.RemoveConstraint(
            model_name="transfer",
            name="transfer_told_has_time",
        ),
        migrations.RemoveConstraint(
            model_name="transfer",
            name="transfer_ended_iff_over",
        ),
        migrations.AlterField(
            model_name="step",
            name="what",
            field=models.CharField(
                choices=[
                    ("held", "Held"),
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
        migrations.AlterField(
            model_name="transfer",
            name="state",
            field=models.CharField(
                choices=[
                    ("held", "Held"),
                    ("queued", "Queued"),
                    ("told", "Told"),
                    ("succeeded", "Succeeded"),
                    ("failed", "Failed"),
                    ("returned", "Returned"),
                    ("canceled", "Canceled"),
                ],
                default="queued",
                max_length=9,
            ),
        ),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "what__in",
                        [
                            "held",
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
        ),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["held", "queued", "told", "succeeded", "failed", "returned", "canceled"])
                ),
                name="transfer_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ("held", "queued", "canceled")), ("told_at__isnull", False), _connector="OR"
                ),
                name="transfer_told_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("state__in", ("held", "queued", "told"))),
                    models.Q(
                        models.Q(("state__in", ("held", "queued", "told")), _negated=True),
                        ("ended_at__isnull", False),
                        ("lease_until__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="transfer_ended_iff_over",
            ),
        ),
        migrations.RunSQL(GUARD, BEFORE.GUARD),
    ]
