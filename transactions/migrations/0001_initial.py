from pathlib import Path

import core.database.columns
import core.database.triggers
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('counts', '0001_initial'),
        ('merchants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Transaction',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('payment_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('refund_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('type', models.CharField(choices=[('payment', 'Payment'), ('refund', 'Refund'), ('failed', 'Failed')], max_length=7)),
                ('status', models.CharField(choices=[('succeeded', 'Succeeded'), ('failed', 'Failed'), ('pending', 'Pending'), ('refunded', 'Refunded')], max_length=9)),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('created_at', models.DateTimeField()),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'indexes': [models.Index(fields=['merchant', 'type', 'status', 'created_at'], name='transaction_filtered')],
                'constraints': [models.UniqueConstraint(fields=('payment_id', 'type', 'refund_id'), name='transaction_once_per_payment', nulls_distinct=False), models.UniqueConstraint(condition=models.Q(('refund_id__isnull', False)), fields=('refund_id',), name='transaction_once_per_refund'), models.CheckConstraint(condition=models.Q(('type__in', ['payment', 'refund', 'failed'])), name='transaction_type_known'), models.CheckConstraint(condition=models.Q(('status__in', ['succeeded', 'failed', 'pending', 'refunded'])), name='transaction_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('amount__lt', 0), ('refund_id__isnull', False), ('type', 'refund')), models.Q(('amount__gt', 0), ('refund_id__isnull', True), ('type__in', ['payment', 'failed'])), _connector='OR'), name='transaction_sign_fits_type'), models.CheckConstraint(condition=models.Q(models.Q(('status__in', ['succeeded', 'refunded']), ('type', 'payment')), models.Q(('status', 'failed'), ('type', 'failed')), models.Q(('status__in', ['pending', 'succeeded', 'failed']), ('type', 'refund')), _connector='OR'), name='transaction_status_fits_type'), models.CheckConstraint(condition=models.Q(('currency', 'THB')), name='transaction_currency_is_thb')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transaction',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a transaction is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='e1488bed39f26e57b752fc1c6e2a5ba2cb5bb9e2', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_248e5', table='transactions_transaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transaction',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."refund_id" IS DISTINCT FROM NEW."refund_id" OR OLD."type" IS DISTINCT FROM NEW."type" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."currency" IS DISTINCT FROM NEW."currency" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'a transaction changes only its status\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='575c47301c6af5753f66fc84ece8e307085edb76', operation='UPDATE', pgid='pgtrigger_read_only_25448', table='transactions_transaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transaction',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('pending', 'failed'), ('pending', 'succeeded'), ('succeeded', 'refunded'))) THEN RAISE EXCEPTION 'transaction cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='8656ce20e0ba02cd5ae589c3191eb5421222199e', operation='UPDATE', pgid='pgtrigger_transitions_685fd', table='transactions_transaction', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
