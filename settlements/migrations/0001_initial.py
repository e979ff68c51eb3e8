from pathlib import Path

import core.database.columns
import core.database.triggers
import django.db.models.deletion
import django.db.models.expressions
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('merchants', '0001_initial'),
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='AcquirerReading',
            fields=[
                ('acquirer', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('read_at', models.DateTimeField(null=True)),
                ('ledger_until', models.DateTimeField(null=True)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='OpenQuestion',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('fee_differs', 'The acquirer kept another fee than it had said'), ('amount_differs', 'The transfer is not the sum of what it pays out'), ('paid_twice', 'The charge or refund was listed before'), ('unknown_item', 'No payment or refund of ours has this item'), ('adjustment', 'The acquirer changed what we receive'), ('missing', 'The acquirer has not paid the charge, but later ones'), ('fee_unknown', 'The acquirer has not said what it keeps'), ('late', 'The transfer has not arrived in time'), ('changed', 'The acquirer reports the transfer with another result or other amounts than before')], max_length=14)),
                ('acquirer', models.CharField(max_length=20)),
                ('subject', models.CharField(max_length=64)),
                ('difference', models.BigIntegerField()),
                ('opened_at', models.DateTimeField()),
                ('closed_at', models.DateTimeField(null=True)),
                ('is_booked', models.BooleanField(default=False)),
                ('note', models.CharField(blank=True, default='', max_length=255)),
            ],
            options={
                'permissions': [('close_question', 'Can close questions about settlements')],
            },
        ),
        migrations.CreateModel(
            name='SettledItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('charge', 'Charge'), ('refund', 'Refund'), ('adjustment', 'Adjustment')], max_length=10)),
                ('reference', models.CharField(max_length=64)),
                ('refund_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('amount', models.BigIntegerField()),
                ('fee', models.BigIntegerField(null=True)),
                ('fee_vat', models.BigIntegerField(null=True)),
                ('net_amount', models.BigIntegerField()),
                ('description', models.CharField(blank=True, default='', max_length=64)),
                ('awaits_result', models.BooleanField(default=False)),
            ],
            options={
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='Settlement',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('gross_amount', models.BigIntegerField()),
                ('fee', models.BigIntegerField()),
                ('fee_vat', models.BigIntegerField()),
                ('payment_count', models.IntegerField()),
                ('differs', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('expected_at', models.DateTimeField()),
                ('arrived_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='UnpaidEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('acquirer', models.CharField(max_length=20)),
                ('entry_id', models.CharField(max_length=64)),
                ('transferable_at', models.DateTimeField()),
                ('item', models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name='AcquirerTransfer',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('acquirer', models.CharField(max_length=20)),
                ('transfer_id', models.CharField(max_length=64)),
                ('amount', models.BigIntegerField()),
                ('fee', models.BigIntegerField()),
                ('fee_vat', models.BigIntegerField()),
                ('net_amount', models.BigIntegerField()),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('sent', 'Sent'), ('paid', 'Paid'), ('failed', 'Failed')], max_length=7)),
                ('created_at', models.DateTimeField()),
                ('arrived_at', models.DateTimeField(null=True)),
                ('bank_transaction_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['acquirer', 'created_at'], name='acquirertransfer_newest'), models.Index(condition=models.Q(('bank_transaction_id__isnull', True), ('state', 'paid')), fields=['net_amount'], name='acquirertransfer_unseen')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'sent', 'paid', 'failed'])), name='acquirertransfer_state_known'), models.UniqueConstraint(fields=('acquirer', 'transfer_id'), name='acquirertransfer_once'), models.UniqueConstraint(fields=('bank_transaction_id',), name='acquirertransfer_seen_once'), models.CheckConstraint(condition=models.Q(('amount', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.F('net_amount'), '+', models.F('fee')), '+', models.F('fee_vat'))), ('amount__gt', 0), ('fee__gte', 0), ('fee_vat__gte', 0)), name='acquirertransfer_amounts_add_up'), models.CheckConstraint(condition=models.Q(models.Q(('arrived_at__isnull', False), ('state', 'paid')), models.Q(models.Q(('state', 'paid'), _negated=True), ('arrived_at__isnull', True)), _connector='OR'), name='acquirertransfer_arrived_iff_paid')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='acquirertransfer',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a transfer of an acquirer is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='de101ffdd294e674b9fa0a85e18758ef0ef665de', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_49cbe', table='settlements_acquirertransfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='acquirertransfer',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."acquirer" IS DISTINCT FROM NEW."acquirer" OR OLD."transfer_id" IS DISTINCT FROM NEW."transfer_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."net_amount" IS DISTINCT FROM NEW."net_amount" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'what the acquirer reported stays\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='011f3d99ec3b33fa376444f8af8997b757365bdc', operation='UPDATE', pgid='pgtrigger_read_only_79e4d', table='settlements_acquirertransfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='acquirertransfer',
            trigger=pgtrigger.compiler.Trigger(name='bank_transaction_id_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.bank_transaction_id IS NOT NULL AND NEW.bank_transaction_id IS DISTINCT FROM OLD.bank_transaction_id) THEN RAISE EXCEPTION 'a transfer keeps where it was seen' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='70fb7d5dca7c8a56b1dade7ff1b7e7d28a02410a', operation='UPDATE', pgid='pgtrigger_bank_transaction_id_set_once_f917d', table='settlements_acquirertransfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='acquirertransfer',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (('pending', 'failed'), ('pending', 'paid'), ('pending', 'sent'), ('sent', 'failed'), ('sent', 'paid'))) THEN RAISE EXCEPTION 'acquirer transfer cannot change from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='36f87eef1eb5bd2c28f2c2313aa9adffe5e3a067', operation='UPDATE', pgid='pgtrigger_transitions_939b1', table='settlements_acquirertransfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='acquirertransfer',
            trigger=pgtrigger.compiler.Trigger(name='arrived_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.arrived_at IS NOT NULL AND NEW.arrived_at IS DISTINCT FROM OLD.arrived_at) THEN RAISE EXCEPTION 'a transfer keeps when it arrived' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='740279d07b43e701325c8270aab57fd4357ff82d', operation='UPDATE', pgid='pgtrigger_arrived_at_set_once_5c531', table='settlements_acquirertransfer', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='openquestion',
            name='failed_transfer',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='answered', to='settlements.acquirertransfer'),
        ),
        migrations.AddField(
            model_name='openquestion',
            name='payment',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='payments.payment'),
        ),
        migrations.AddField(
            model_name='openquestion',
            name='transfer',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='questions', to='settlements.acquirertransfer'),
        ),
        migrations.AddField(
            model_name='settleditem',
            name='payment',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='settled_items', to='payments.payment'),
        ),
        migrations.AddField(
            model_name='settleditem',
            name='transfer',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='items', to='settlements.acquirertransfer'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='merchant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='transfer',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='settlements', to='settlements.acquirertransfer'),
        ),
        migrations.AddField(
            model_name='settleditem',
            name='settlement',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='items', to='settlements.settlement'),
        ),
        migrations.AddIndex(
            model_name='unpaidentry',
            index=models.Index(fields=['acquirer', 'transferable_at'], name='unpaidentry_next'),
        ),
        migrations.AddConstraint(
            model_name='unpaidentry',
            constraint=models.UniqueConstraint(fields=('acquirer', 'entry_id'), name='unpaidentry_once'),
        ),
        migrations.AddIndex(
            model_name='openquestion',
            index=models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['opened_at'], name='openquestion_open'),
        ),
        migrations.AddConstraint(
            model_name='openquestion',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['fee_differs', 'amount_differs', 'paid_twice', 'unknown_item', 'adjustment', 'missing', 'fee_unknown', 'late', 'changed'])), name='openquestion_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='openquestion',
            constraint=models.UniqueConstraint(fields=('kind', 'acquirer', 'subject', 'transfer'), name='openquestion_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='openquestion',
            constraint=models.CheckConstraint(condition=models.Q(('closed_at__isnull', False), models.Q(('failed_transfer', None), ('is_booked', False), ('note', '')), _connector='OR'), name='openquestion_closed_with_note'),
        ),
        migrations.AddConstraint(
            model_name='openquestion',
            constraint=models.CheckConstraint(condition=models.Q(('failed_transfer', None), models.Q(('is_booked', False), ('kind__in', ('amount_differs', 'adjustment'))), _connector='OR'), name='openquestion_of_failed_transfer'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='openquestion',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a question is closed, never deleted' USING ERRCODE = 'insufficient_privilege';", hash='284e3b4fca4af7d361753e8017bb9074f9b01e8f', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_71359', table='settlements_openquestion', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='openquestion',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."kind" IS DISTINCT FROM NEW."kind" OR OLD."acquirer" IS DISTINCT FROM NEW."acquirer" OR OLD."subject" IS DISTINCT FROM NEW."subject" OR OLD."transfer_id" IS DISTINCT FROM NEW."transfer_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."difference" IS DISTINCT FROM NEW."difference" OR OLD."opened_at" IS DISTINCT FROM NEW."opened_at")) THEN RAISE EXCEPTION \'a question stays as it was asked\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='29d4b93145fa644bad8075532f81635d7ff2c8e0', operation='UPDATE', pgid='pgtrigger_read_only_27817', table='settlements_openquestion', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='openquestion',
            trigger=pgtrigger.compiler.Trigger(name='closed_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at) THEN RAISE EXCEPTION 'a closed question stays closed' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='850961dbcbc93f95c8112ea9193c1695a7f2be5f', operation='UPDATE', pgid='pgtrigger_closed_at_set_once_09d18', table='settlements_openquestion', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='openquestion',
            trigger=pgtrigger.compiler.Trigger(name='answer_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.closed_at IS NOT NULL AND (NEW.note, NEW.is_booked, NEW.failed_transfer_id) IS DISTINCT FROM (OLD.note, OLD.is_booked, OLD.failed_transfer_id)) THEN RAISE EXCEPTION 'a closed question keeps its answer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='a8f48ee67aa63826c6002e70a01a57489afa9541', operation='UPDATE', pgid='pgtrigger_answer_final_563d6', table='settlements_openquestion', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='settlement',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='settlement_newest_first'),
        ),
        migrations.AddConstraint(
            model_name='settlement',
            constraint=models.CheckConstraint(condition=models.Q(('payment_count__gte', 1)), name='settlement_has_payments'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='settlement',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a settlement is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='f4091e0a168d263244483fa2f78d9108b88c6283', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_99f2a', table='settlements_settlement', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='settlement',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."transfer_id" IS DISTINCT FROM NEW."transfer_id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."gross_amount" IS DISTINCT FROM NEW."gross_amount" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."payment_count" IS DISTINCT FROM NEW."payment_count" OR OLD."created_at" IS DISTINCT FROM NEW."created_at" OR OLD."expected_at" IS DISTINCT FROM NEW."expected_at")) THEN RAISE EXCEPTION \'what a settlement pays stays\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='a503498fac2f00af86886c04b678103a3568eb86', operation='UPDATE', pgid='pgtrigger_read_only_8448e', table='settlements_settlement', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='settlement',
            trigger=pgtrigger.compiler.Trigger(name='arrived_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.arrived_at IS NOT NULL AND NEW.arrived_at IS DISTINCT FROM OLD.arrived_at) THEN RAISE EXCEPTION 'a settlement keeps when it arrived' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='b355918fdf1adc12e0a03a30d265b0514d525081', operation='UPDATE', pgid='pgtrigger_arrived_at_set_once_10cf6', table='settlements_settlement', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='settleditem',
            index=models.Index(fields=['reference'], name='settleditem_by_reference'),
        ),
        migrations.AddIndex(
            model_name='settleditem',
            index=models.Index(condition=models.Q(('awaits_result', True)), fields=['transfer'], name='settleditem_awaits_result'),
        ),
        migrations.AddConstraint(
            model_name='settleditem',
            constraint=models.UniqueConstraint(fields=('transfer', 'kind', 'reference'), name='settleditem_once'),
        ),
        migrations.AddConstraint(
            model_name='settleditem',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['charge', 'refund', 'adjustment'])), name='settleditem_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='settleditem',
            constraint=models.CheckConstraint(condition=models.Q(('awaits_result', False), models.Q(('kind__in', ('charge', 'refund')), ('payment__isnull', False), ('settlement__isnull', True)), _connector='OR'), name='settleditem_awaits_its_result'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='settleditem',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'what the acquirer reported is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='0f8365e7f9ecc61b431f34f68c4a1802155378db', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_ea6e7', table='settlements_settleditem', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='settleditem',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."transfer_id" IS DISTINCT FROM NEW."transfer_id" OR OLD."kind" IS DISTINCT FROM NEW."kind" OR OLD."reference" IS DISTINCT FROM NEW."reference" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."refund_id" IS DISTINCT FROM NEW."refund_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."net_amount" IS DISTINCT FROM NEW."net_amount" OR OLD."description" IS DISTINCT FROM NEW."description")) THEN RAISE EXCEPTION \'what the acquirer reported stays\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='6ad56a40ca52deee8f7c1098edc8ffeb7a1a9e67', operation='UPDATE', pgid='pgtrigger_read_only_f58bb', table='settlements_settleditem', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='settleditem',
            trigger=pgtrigger.compiler.Trigger(name='settled_once', sql=core.database.triggers.TriggerSql(func="IF (NOT OLD.awaits_result AND (NEW.settlement_id, NEW.awaits_result) IS DISTINCT FROM (OLD.settlement_id, false)) THEN RAISE EXCEPTION 'only an item that waits for its result gets a settlement' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='a1a17fc8f550d63d27eaa0d8901fc16314d7ffb3', operation='UPDATE', pgid='pgtrigger_settled_once_7dcce', table='settlements_settleditem', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
