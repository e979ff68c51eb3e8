"""How far an import has come, and what is wrong with its file. Lines are stored joined, so none waits."""

from django.db import migrations, models
from django.db.models import Q

GUARD = """
DROP TRIGGER receipts_guard ON receipts_statement;
CREATE FUNCTION receipts_guard_statement() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free text[] := '{done,known,complaints,ended_at}';
BEGIN
    IF TG_OP = 'DELETE' OR OLD.ended_at IS NOT NULL
       OR (to_jsonb(NEW) - free) IS DISTINCT FROM (to_jsonb(OLD) - free) THEN
        RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard BEFORE UPDATE OR DELETE ON receipts_statement
    FOR EACH ROW EXECUTE FUNCTION receipts_guard_statement();
"""
UNGUARD = """
DROP TRIGGER receipts_guard ON receipts_statement;
DROP FUNCTION receipts_guard_statement();
CREATE TRIGGER receipts_guard BEFORE UPDATE OR DELETE ON receipts_statement
    FOR EACH ROW EXECUTE FUNCTION receipts_guard();
"""
RESULTS = ["attached", "new", "unreadable"]


class Migration(migrations.Migration):
    dependencies = [("receipts", "0008_inquiries")]
    operations = [
        migrations.AddField(
            "statement",
            "total",
            models.IntegerField(default=0, help_text="Lines of the file that speak of money, or should."),
            preserve_default=False,
        ),
        migrations.AddField(
            "statement", "done", models.IntegerField(default=0, help_text="Lines that are stored.")
        ),
        migrations.AddField(
            "statement",
            "known",
            models.IntegerField(default=0, help_text="Lines that were stored before, by another import."),
        ),
        migrations.AddField(
            "statement",
            "complaints",
            models.TextField(blank=True, default="", help_text="What is wrong with the file as a whole."),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.AlterField(
            "statementline",
            "result",
            models.CharField(
                max_length=10,
                choices=[("attached", "Attached"), ("new", "New"), ("unreadable", "Unreadable")],
            ),
        ),
        # A batch of lines is looked for by digest, whatever the planner knows of the table.
        migrations.RemoveConstraint("statementline", "statementline_once"),
        migrations.AddConstraint(
            "statementline",
            models.UniqueConstraint(
                fields=["digest", "occurrence", "bank", "account", "day"],
                name="statementline_once",
                nulls_distinct=False,
            ),
        ),
        migrations.RemoveConstraint("statementline", "statementline_result_known"),
        migrations.RemoveConstraint("statementline", "statementline_receipt_iff_joined"),
        migrations.AddConstraint(
            "statementline",
            models.CheckConstraint(condition=Q(result__in=RESULTS), name="statementline_result_known"),
        ),
        migrations.AddConstraint(
            "statementline",
            models.CheckConstraint(
                condition=Q(result__in=["attached", "new"], receipt__isnull=False)
                | Q(result="unreadable", receipt__isnull=True),
                name="statementline_receipt_iff_joined",
            ),
        ),
    ]
