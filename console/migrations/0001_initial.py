from pathlib import Path

from django.db import migrations, models


SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('admin', '0003_logentry_add_action_flag_choices'),
    ]

    operations = [
        migrations.CreateModel(
            name='LoginThrottle',
            fields=[
                ('subject', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('failure_count', models.IntegerField()),
                ('expires_at', models.DateTimeField(db_index=True, verbose_name='counted until')),
            ],
            options={
                'verbose_name': 'failed logins',
                'verbose_name_plural': 'failed logins',
                'permissions': [('lift_lockout', 'Can lift a lockout')],
                'default_permissions': ('view',),
                'constraints': [models.CheckConstraint(condition=models.Q(('failure_count__gte', 0)), name='login_throttle_failure_count_not_negative')],
            },
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
