"""The name of a sealed column says so: `manage.py reseal` finds its columns by that."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0001_initial")]
    operations = [
        migrations.RenameField("idempotencykey", "body", "body_sealed"),
        migrations.AlterField(
            "idempotencykey",
            "body_sealed",
            models.BinaryField(editable=False, help_text="The answer, byte for byte."),
        ),
    ]
