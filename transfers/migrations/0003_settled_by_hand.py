"""Who of staff ended a transfer on which its bank is silent: said with the last word, and never changed."""

from django.db import migrations, models

GUARD = """
CREATE FUNCTION transfers_guard_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.settled_by <> OLD.settled_by
            AND (OLD.state || '>' || NEW.state) NOT IN ('told>succeeded', 'told>failed') THEN
        RAISE EXCEPTION 'who ended a transfer is said as it ends' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER transfers_guard_hand BEFORE UPDATE ON transfers_transfer
    FOR EACH ROW EXECUTE FUNCTION transfers_guard_hand();
"""
UNGUARD = """
DROP TRIGGER transfers_guard_hand ON transfers_transfer;
DROP FUNCTION transfers_guard_hand();
"""


class Migration(migrations.Migration):
    dependencies = [("transfers", "0002_guard_moves")]
    operations = [
        migrations.AlterModelOptions(
            name="transfer",
            options={"permissions": [("settle_transfer", "Can end transfers on which the bank is silent")]},
        ),
        migrations.AddField(
            model_name="transfer",
            name="settled_by",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Who of staff ended it, after asking the bank.",
                max_length=150,
            ),
        ),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("settled_by", ""), ("state__in", ["succeeded", "failed", "returned"]), _connector="OR"
                ),
                name="transfer_settled_by_hand_is_over",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
