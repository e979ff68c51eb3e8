from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('merchants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='MerchantClock',
            fields=[
                ('merchant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='merchants.merchant')),
                ('advanced_seconds', models.IntegerField(default=0)),
                ('advanced_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('advanced_seconds__gte', 0), ('advanced_seconds__lte', 7776000)), name='merchantclock_within_limits')],
            },
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
