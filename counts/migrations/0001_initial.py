from pathlib import Path

import core.database.columns
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='CountClock',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('closed', models.DateTimeField()),
                ('announced', models.DateTimeField()),
                ('announced_by', models.BigIntegerField(help_text='The transaction of the announcement.', null=True)),
                ('marked_by', models.BigIntegerField(help_text='A later one. When it and all before have ended, every writer has seen it.', null=True)),
                ('target', models.DateTimeField(help_text='Until when the caller of the last step would close.', null=True)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='CountDelta',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list', models.CharField(max_length=12)),
                ('owner_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('kind', models.CharField(max_length=40)),
                ('period', models.DateTimeField(help_text='The start of the period in which the rows were created.')),
                ('delta', models.BigIntegerField()),
                ('amount', models.BigIntegerField(db_default=0, default=0, help_text='The change in satang.')),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['owner_id', 'list'], name='countdelta_of_list')],
            },
        ),
        migrations.CreateModel(
            name='ListCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list', models.CharField(max_length=12)),
                ('owner_id', core.database.columns.PublicId(db_collation='C', help_text='Whose list: a merchant, a webhook, or all merchants: `live` or `test`.', max_length=31)),
                ('kind', models.CharField(max_length=40)),
                ('bucket', models.CharField(choices=[('month', 'Month'), ('day', 'Day'), ('hour', 'Hour'), ('minute', 'Minute')], max_length=6)),
                ('starts_at', models.DateTimeField()),
                ('count', models.BigIntegerField()),
                ('amount', models.BigIntegerField(db_default=0, default=0, help_text='Satang of these rows.')),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('bucket__in', ['day', 'hour']), ('list__in', ['payments', 'transactions'])), fields=['list', 'bucket', 'starts_at'], name='listcount_of_all_owners')],
                'constraints': [models.UniqueConstraint(fields=('owner_id', 'list', 'bucket', 'starts_at', 'kind'), name='listcount_once'), models.CheckConstraint(condition=models.Q(('bucket__in', ['month', 'day', 'hour', 'minute'])), name='listcount_bucket_known')],
            },
        ),
        migrations.CreateModel(
            name='OpenPeriod',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period', models.DateTimeField(help_text='Its start. It lasts five seconds.')),
                ('owner_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['period', 'owner_id'], name='openperiod_of_owner')],
            },
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
