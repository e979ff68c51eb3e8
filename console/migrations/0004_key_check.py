"""A sealed text that proves that the encryption keys are right."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0003_keep_staff")]
    operations = [
        migrations.CreateModel(
            name="KeyCheck",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("text_sealed", models.TextField(editable=False)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="key_check_only_one")
                ],
            },
        )
    ]
