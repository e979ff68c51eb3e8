"""Whose turn it is to be asked; and a code that its merchant ends early is asked about from then on.

The database tells the inquiry, because whoever ends a code knows nothing of inquiries.
"""

from django.db import migrations, models

# A second after the end is the first entry of the schedule after it (`receipts.schedule`).
EARLY = """
CREATE FUNCTION receipts_ended_early() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE receipts_inquiry SET due_at = NEW.expires_at + interval '1 second'
    WHERE payment_id = NEW.id AND due_at > NEW.expires_at + interval '1 second';
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_ended_early AFTER UPDATE OF expires_at ON payments_payment
    FOR EACH ROW WHEN (NEW.expires_at < OLD.expires_at) EXECUTE FUNCTION receipts_ended_early();
"""
UNEARLY = """
DROP TRIGGER receipts_ended_early ON payments_payment;
DROP FUNCTION receipts_ended_early();
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0007_waiting"), ("payments", "0007_bank_transaction")]
    operations = [
        migrations.CreateModel(
            name="Turn",
            fields=[
                ("bank", models.CharField(max_length=20, primary_key=True, serialize=False)),
                (
                    "free_at",
                    models.DateTimeField(
                        help_text="By the database's clock; while it is being asked, the end of a lease."
                    ),
                ),
                (
                    "silences",
                    models.IntegerField(default=0, help_text="Rounds in a row without any answer."),
                ),
            ],
        ),
        migrations.RunSQL(EARLY, UNEARLY),
    ]
