from pathlib import Path

import core.database.columns
import core.database.triggers
import django.db.models.deletion
import django.db.models.functions.text
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
            name='PendingEntry',
            fields=[
                ('pk', models.CompositePrimaryKey('account_id', 'entry_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('account_id', core.database.columns.PublicId(db_collation='C', max_length=48)),
                ('entry_id', models.BigIntegerField()),
                ('amount', models.BigIntegerField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Account',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=48, primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('available', 'Available'), ('reserved', 'Reserved'), ('debt', 'Debt'), ('unconfirmed', 'Unconfirmed'), ('unsettled', 'Unsettled'), ('bank', 'Bank'), ('acquirer', 'Acquirer'), ('fees', 'Fees'), ('fee_vat', 'Fee Vat'), ('suspense', 'Suspense'), ('write_offs', 'Write Offs')], max_length=11)),
                ('rolled_up_balance', models.BigIntegerField(default=0)),
                ('entries_total', models.BigIntegerField(db_default=0, default=0, editable=False)),
                ('merchant', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
        ),
        migrations.CreateModel(
            name='BalanceTransaction',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('payment', 'Payment'), ('unconfirmed_payment', 'Unconfirmed Payment'), ('unsettled_payment', 'Unsettled Payment'), ('fee', 'Fee'), ('unsettled_fee', 'Unsettled Fee'), ('fee_added', 'Fee Added'), ('fee_returned', 'Fee Returned'), ('settled', 'Settled'), ('unsettled', 'Unsettled'), ('confirmed', 'Confirmed'), ('refund_reserved', 'Refund Reserved'), ('refund_paid', 'Refund Paid'), ('refund_released', 'Refund Released'), ('refund_returned', 'Refund Returned'), ('withdrawal_reserved', 'Withdrawal Reserved'), ('withdrawal_paid', 'Withdrawal Paid'), ('withdrawal_released', 'Withdrawal Released'), ('withdrawal_returned', 'Withdrawal Returned'), ('reversal', 'Reversal'), ('unconfirmed_reversal', 'Unconfirmed Reversal')], max_length=20)),
                ('amount', models.BigIntegerField()),
                ('source_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('created_at', models.DateTimeField()),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Journal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('type', models.CharField(choices=[('payment', 'Payment'), ('fee', 'Fee'), ('fee_returned', 'Fee Returned'), ('fee_added', 'Fee Added'), ('settled', 'Settled'), ('transfer_received', 'Transfer Received'), ('transfer_seen', 'Transfer Seen'), ('difference_booked', 'Difference Booked'), ('unsettled', 'Unsettled'), ('refund_reserved', 'Refund Reserved'), ('refund_paid', 'Refund Paid'), ('refund_released', 'Refund Released'), ('withdrawal_reserved', 'Withdrawal Reserved'), ('withdrawal_paid', 'Withdrawal Paid'), ('withdrawal_released', 'Withdrawal Released'), ('withdrawal_returned', 'Withdrawal Returned'), ('reversal', 'Reversal'), ('debt_repaid', 'Debt Repaid'), ('held', 'Held'), ('accepted', 'Accepted'), ('sent_back', 'Sent Back'), ('merged', 'Merged'), ('unmerged', 'Unmerged'), ('undone', 'Undone'), ('written_off', 'Written Off'), ('recovered', 'Recovered'), ('confirmed', 'Confirmed')], max_length=19)),
                ('subject_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('amount', models.BigIntegerField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('subject_id', 'type'), name='journal_once_per_subject_and_type'), models.CheckConstraint(condition=models.Q(('type__in', ['payment', 'fee', 'fee_returned', 'fee_added', 'settled', 'transfer_received', 'transfer_seen', 'difference_booked', 'unsettled', 'refund_reserved', 'refund_paid', 'refund_released', 'withdrawal_reserved', 'withdrawal_paid', 'withdrawal_released', 'withdrawal_returned', 'reversal', 'debt_repaid', 'held', 'accepted', 'sent_back', 'merged', 'unmerged', 'undone', 'written_off', 'recovered', 'confirmed'])), name='journal_type_known'), models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='journal_amount_positive')],
            },
        ),
        migrations.CreateModel(
            name='Entry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('amount', models.BigIntegerField()),
                ('created_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='ledger.account')),
                ('journal', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='entries', to='ledger.journal')),
            ],
            options={
                'verbose_name_plural': 'entries',
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='journal',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a posting is never changed' USING ERRCODE = 'insufficient_privilege';", hash='535dacaddf160688aa1fd739c50ed61a5bec94e2', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_4d2c8', table='ledger_journal', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='pendingentry',
            constraint=models.CheckConstraint(condition=models.Q(('account_id__regex', '^(bank|acquirer|fees|fee_vat):'), models.Q(('account_id__regex', '^(available:|unconfirmed:|unsettled:|suspense(:sandbox)?$)'), ('amount__gt', 0)), _connector='OR'), name='pendingentry_only_adds'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='pendingentry',
            trigger=pgtrigger.compiler.Trigger(name='no_update', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a pending entry is only added and deleted' USING ERRCODE = 'insufficient_privilege';", hash='9090988daa7a22480c3842b908dae7189c9799da', level='STATEMENT', operation='UPDATE OR TRUNCATE', pgid='pgtrigger_no_update_a165a', table='ledger_pendingentry', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='account',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['available', 'reserved', 'debt', 'unconfirmed', 'unsettled', 'bank', 'acquirer', 'fees', 'fee_vat', 'suspense', 'write_offs'])), name='account_type_known'),
        ),
        migrations.AddConstraint(
            model_name='account',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('id', django.db.models.functions.text.Concat(models.F('type'), models.Value(':'), models.F('merchant_id'), output_field=models.TextField())), ('merchant__isnull', False), ('type__in', ('available', 'reserved', 'debt', 'unconfirmed', 'unsettled'))), models.Q(('merchant__isnull', True), models.Q(models.Q(('id__regex', '^bank:.'), ('type', 'bank')), models.Q(('id__regex', '^acquirer:.'), ('type', 'acquirer')), models.Q(('id__regex', '^fees:.'), ('type', 'fees')), models.Q(('id__regex', '^fee_vat:.'), ('type', 'fee_vat')), _connector='OR')), models.Q(('id__in', ['suspense', 'suspense:sandbox']), ('merchant__isnull', True), ('type', 'suspense')), models.Q(('id__in', ['write_offs', 'write_offs:sandbox']), ('merchant__isnull', True), ('type', 'write_offs')), _connector='OR'), name='account_code_fits_type'),
        ),
        migrations.AddConstraint(
            model_name='account',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('rolled_up_balance__gte', 0), ('type__in', ['available', 'reserved', 'unconfirmed', 'unsettled', 'suspense'])), models.Q(('rolled_up_balance__lte', 0), ('type__in', ['debt', 'write_offs'])), ('type__in', ('bank', 'acquirer', 'fees', 'fee_vat')), _connector='OR'), name='account_not_overdrawn'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='account',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an account is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='540291a589f4ca846f3afbe416aacf80411e0c54', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_8e9e5', table='ledger_account', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='account',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."type" IS DISTINCT FROM NEW."type" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id")) THEN RAISE EXCEPTION \'an account never changes its merchant\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='f74ec2e2151f9e8b4c4232a2aecd9a7f629f57f5', operation='UPDATE', pgid='pgtrigger_read_only_e75ba', table='ledger_account', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='balancetransaction',
            index=models.Index(fields=['merchant', 'type', 'created_at'], name='baltransaction_filtered'),
        ),
        migrations.AddConstraint(
            model_name='balancetransaction',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['payment', 'unconfirmed_payment', 'unsettled_payment', 'fee', 'unsettled_fee', 'fee_added', 'fee_returned', 'settled', 'unsettled', 'confirmed', 'refund_reserved', 'refund_paid', 'refund_released', 'refund_returned', 'withdrawal_reserved', 'withdrawal_paid', 'withdrawal_released', 'withdrawal_returned', 'reversal', 'unconfirmed_reversal'])), name='baltransaction_type_known'),
        ),
        migrations.AddConstraint(
            model_name='balancetransaction',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='baltransaction_amount_positive'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='balancetransaction',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a posting is never changed' USING ERRCODE = 'insufficient_privilege';", hash='27d6bec8ebd6c248c3a817dc92ff65c3bd3da2d1', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_a70bd', table='ledger_balancetransaction', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='entry',
            index=models.Index(fields=['account', 'created_at'], include=('amount',), name='entry_by_account'),
        ),
        migrations.AddConstraint(
            model_name='entry',
            constraint=models.CheckConstraint(condition=models.Q(('amount', 0), _negated=True), name='entry_amount_not_zero'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='entry',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a posting is never changed' USING ERRCODE = 'insufficient_privilege';", hash='aba5f49916ed1e074e1520eb907d4a25141008fe', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_af900', table='ledger_entry', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
