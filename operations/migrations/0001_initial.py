import core.triggers
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('recorded_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='EncryptionKeyCheck',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('text_sealed', models.TextField(editable=False)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='encryption_key_check_single_row')],
            },
        ),
        migrations.CreateModel(
            name='DailyClose',
            fields=[
                ('number', models.BigIntegerField(primary_key=True, serialize=False)),
                ('day', models.DateField(unique=True, verbose_name='day')),
                ('body', models.TextField(help_text='The JSON that is signed, byte by byte.')),
                ('hash', models.CharField(max_length=64)),
                ('previous_hash', models.CharField(blank=True, max_length=64)),
                ('signature', models.CharField(help_text='Ed25519, in base64.', max_length=88)),
                ('public_key', models.CharField(max_length=44)),
            ],
            options={
                'verbose_name': 'daily close',
                'verbose_name_plural': 'daily closes',
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(fields=('previous_hash',), name='dailyclose_one_successor'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='dailyclose_number_positive')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='dailyclose',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.triggers.TriggerSql(func="RAISE EXCEPTION 'a daily close is never changed' USING ERRCODE = 'insufficient_privilege';", hash='b214f4996264f2306d5e8654aa32dda224fafd91', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_a82b6', table='operations_dailyclose', when='BEFORE')),
        ),
    ]
