from pathlib import Path

import core.database.columns
import core.database.triggers
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.text
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('approvals', '0001_initial'),
        ('ledger', '0001_initial'),
        ('merchants', '0001_initial'),
        ('operations', '0001_initial'),
        ('payments', '0001_initial'),
        ('refunds', '0001_initial'),
        ('transfers', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='BankNotification',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('bank', models.CharField(max_length=20)),
                ('source', models.CharField(choices=[('callback', 'Callback'), ('inquiry', 'Inquiry'), ('statement', 'Statement')], default='callback', max_length=10)),
                ('body_sealed', core.database.columns.SealedText(editable=False)),
                ('body_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('result', models.CharField(choices=[('new', 'New'), ('repeat', 'Repeat'), ('conflict', 'Conflict'), ('unreadable', 'Unreadable'), ('fee_differs', 'Fee Differs'), ('moved', 'Moved'), ('unsigned', 'Unsigned')], max_length=11)),
                ('order_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('received_at', models.DateTimeField()),
                ('request_id', models.CharField(blank=True, default='', max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name='BankRateLimit',
            fields=[
                ('bank', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('available_at', models.DateTimeField()),
                ('slips_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('batch_count', models.IntegerField(db_default=0, default=0)),
                ('silent_batches', models.IntegerField(default=0)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='BankTransaction',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('bank', models.CharField(max_length=20)),
                ('bank_reference', models.CharField(max_length=64)),
                ('later_bank_reference', models.CharField(blank=True, default='', max_length=64)),
                ('source', models.CharField(choices=[('callback', 'Callback'), ('inquiry', 'Inquiry'), ('statement', 'Statement')], default='callback', max_length=9)),
                ('kind', models.CharField(choices=[('credit', 'Credit'), ('decline', 'Decline'), ('reversal', 'Reversal')], max_length=8)),
                ('biller_id', models.CharField(max_length=15)),
                ('reference1', models.CharField(max_length=35)),
                ('reference2', models.CharField(blank=True, default='', max_length=35)),
                ('reference3', models.CharField(blank=True, default='', max_length=35)),
                ('amount', models.BigIntegerField()),
                ('paid_at', models.DateTimeField()),
                ('payer_name', models.CharField(blank=True, default='', max_length=140)),
                ('payer_bank_code', models.CharField(blank=True, default='', max_length=3)),
                ('payer_account_sealed', core.database.columns.SealedText(blank=True, default='', editable=False)),
                ('payer_account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('slip_reference', models.CharField(blank=True, default='', max_length=64)),
                ('is_confirmed', models.BooleanField(db_default=True, default=True)),
                ('match_result', models.CharField(blank=True, choices=[('', 'Not matched yet'), ('applied', 'Paid its payment'), ('declined', 'Declined by the bank'), ('reversed', 'Deducted from the balance'), ('ordered', 'Requested by a refund'), ('unmatched', 'Unknown reference'), ('duplicate', 'Paid twice'), ('time_mismatch', 'Paid too early'), ('amount_mismatch', 'Wrong amount'), ('late', 'Paid after expiry')], default='', max_length=16)),
                ('received_at', models.DateTimeField()),
                ('matched_at', models.DateTimeField(null=True)),
                ('resolution_state', models.CharField(blank=True, choices=[('', 'None yet'), ('accepted', 'Accepted'), ('attached', 'Attached'), ('sending_back', 'On its way back to the payer'), ('sent_back', 'Sent back to the payer'), ('taken_back', 'Reversed by the bank'), ('merged', 'Merged into another bank transaction'), ('acquirer', 'A transfer of the acquirer'), ('undone', 'Gone with its import'), ('dismissed', 'Dismissed'), ('written_off', 'Written Off')], default='', max_length=12)),
                ('resolved_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
                ('payment', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bank_transactions', to='payments.payment')),
            ],
            options={
                'permissions': [('accept_exception', 'Can accept money for its payment'), ('attach_exception', 'Can attach money to another payment'), ('send_back_exception', 'Can send money back to the payer'), ('return_excess_exception', 'Can send the excess of an over-payment back to the payer'), ('send_to_exception', 'Can send money back to another account'), ('manual_return_exception', 'Can record money that was sent back at the bank'), ('merge_exception', 'Can merge bank transactions that are one'), ('acquirer_exception', 'Can identify money as a transfer of an acquirer'), ('dismiss_exception', 'Can dismiss exceptions about no money of ours'), ('write_off_exception', 'Can write off money that a bank took back'), ('credit_exception', 'Can credit merchants with refunds that came back'), ('returned_exception', 'Can book transfers as returned'), ('failed_exception', 'Can book transfers and card payments as failed'), ('reopen_exception', 'Can reopen resolved exceptions'), ('confirm_banktransaction', 'Can confirm money that only a statement reports')],
            },
        ),
        migrations.CreateModel(
            name='Return',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('amount', models.BigIntegerField()),
                ('route', models.CharField(max_length=30)),
                ('account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('completed', 'Completed'), ('failed', 'Failed'), ('canceled', 'Canceled')], default='pending', max_length=9)),
                ('is_manual', models.BooleanField(default=False)),
                ('bank_reference', models.CharField(blank=True, default='', max_length=64)),
                ('failure_code', models.CharField(blank=True, default='', max_length=40)),
                ('created_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('returned_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='ScanCursor',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('created_before', models.DateTimeField()),
                ('scanned_until', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='SlipCheck',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('sending_bank', models.CharField(blank=True, max_length=20)),
                ('transaction_id', models.CharField(blank=True, max_length=64)),
                ('claimed_payment_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('verdict', models.CharField(blank=True, choices=[('valid', 'Valid'), ('repeated', 'Repeated'), ('wrong_amount', 'Wrong Amount'), ('wrong_receiver', 'Wrong Receiver'), ('not_found', 'Not Found'), ('unreadable', 'Unreadable'), ('unknown', 'Unknown')], default='', max_length=14)),
                ('is_first', models.BooleanField(default=False)),
                ('checked_at', models.DateTimeField()),
            ],
            options={
                'permissions': [('check_slip', 'Can check slips'), ('ask_bank', 'Can ask banks about slips')],
            },
        ),
        migrations.CreateModel(
            name='Statement',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('bank', models.CharField(max_length=20)),
                ('file_name', models.CharField(max_length=255)),
                ('file_sha256', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField()),
                ('line_count', models.IntegerField()),
                ('stored_count', models.IntegerField(default=0)),
                ('duplicate_count', models.IntegerField(default=0)),
                ('fee_count', models.IntegerField(db_default=0, default=0)),
                ('problems', models.TextField(blank=True, default='')),
                ('completed_at', models.DateTimeField(null=True)),
                ('undone_at', models.DateTimeField(null=True, verbose_name='undone at')),
            ],
            options={
                'permissions': [('import_statement', 'Can import statement files of banks')],
            },
        ),
        migrations.CreateModel(
            name='StatementLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('line_number', models.IntegerField()),
                ('bank', models.CharField(max_length=20)),
                ('biller_id', models.CharField(max_length=20)),
                ('bank_date', models.DateField(null=True)),
                ('line_sha256', models.CharField(max_length=64)),
                ('occurrence', models.IntegerField(default=1)),
                ('line_sealed', models.TextField(editable=False)),
                ('result', models.CharField(choices=[('attached', 'Attached'), ('new', 'New'), ('unreadable', 'Unreadable')], max_length=10)),
                ('error', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('kind', models.CharField(blank=True, choices=[('credit', 'Credit'), ('decline', 'Decline'), ('reversal', 'Reversal')], default='', max_length=8)),
                ('reference1', models.CharField(blank=True, db_default='', default='', max_length=35)),
                ('amount', models.BigIntegerField(null=True)),
                ('fee', models.BigIntegerField(null=True)),
                ('fee_vat', models.BigIntegerField(null=True, verbose_name='VAT of the fee')),
                ('is_fee_due', models.BooleanField(db_default=False, default=False)),
                ('paid_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='StatementPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('statement_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('number', models.IntegerField()),
                ('content_sealed', models.TextField(editable=False)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='StatementUpload',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('bank', models.CharField(max_length=20)),
                ('file_name', models.CharField(max_length=255)),
                ('file_sha256', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField()),
                ('line_count', models.IntegerField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Backoff',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('bank', models.CharField(max_length=20)),
                ('silent_batches', models.IntegerField()),
                ('retry_at', models.DateTimeField()),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='NotificationId',
            fields=[
                ('notification', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='reconciliation.banknotification')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Excess',
            fields=[
                ('bank_transaction', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='excess', serialize=False, to='reconciliation.banktransaction')),
                ('amount', models.BigIntegerField()),
                ('resolution_state', models.CharField(blank=True, choices=[('', 'None yet'), ('accepted', 'Accepted'), ('attached', 'Attached'), ('sending_back', 'On its way back to the payer'), ('sent_back', 'Sent back to the payer'), ('taken_back', 'Reversed by the bank'), ('merged', 'Merged into another bank transaction'), ('acquirer', 'A transfer of the acquirer'), ('undone', 'Gone with its import'), ('dismissed', 'Dismissed'), ('written_off', 'Written Off')], default='', max_length=12)),
                ('resolved_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddField(
            model_name='banknotification',
            name='bank_transaction',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='notifications', to='reconciliation.banktransaction'),
        ),
        migrations.CreateModel(
            name='ConfirmationInquiry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('bank', models.CharField(max_length=20)),
                ('due_at', models.DateTimeField(null=True)),
                ('is_urgent', models.BooleanField(db_default=True, default=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('payment_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('bank_reference', models.CharField(blank=True, default='', max_length=64)),
                ('biller_id', models.CharField(max_length=15)),
                ('reference1', models.CharField(max_length=35)),
                ('amount', models.BigIntegerField()),
                ('paid_at', models.DateTimeField()),
                ('attempts', models.SmallIntegerField(default=0)),
                ('last_outcome', models.CharField(blank=True, choices=[('found', 'The bank reports money'), ('nothing', 'The bank reports no money'), ('no_answer', 'The bank did not answer'), ('unreadable', "The bank's answer could not be read")], default='', max_length=10)),
                ('alerted_at', models.DateTimeField(null=True)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('bank_transaction', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='confirmation_inquiry', to='reconciliation.banktransaction')),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
                ('notification', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='confirmation_inquiry', to='reconciliation.banknotification')),
            ],
            options={
                'verbose_name_plural': 'confirmation inquiries',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Inquiry',
            fields=[
                ('bank', models.CharField(max_length=20)),
                ('due_at', models.DateTimeField(null=True)),
                ('is_urgent', models.BooleanField(db_default=True, default=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('payment', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='inquiry', serialize=False, to='payments.payment')),
                ('schedule_index', models.SmallIntegerField(default=0)),
            ],
            options={
                'verbose_name_plural': 'inquiries',
                'abstract': False,
                'indexes': [models.Index(condition=models.Q(('due_at__isnull', False)), fields=['bank', 'is_urgent', 'due_at'], name='inquiry_priority')],
            },
        ),
        migrations.CreateModel(
            name='InquiryAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('outcome', models.CharField(choices=[('found', 'The bank reports money'), ('nothing', 'The bank reports no money'), ('no_answer', 'The bank did not answer'), ('unreadable', "The bank's answer could not be read")], max_length=10)),
                ('transaction_count', models.SmallIntegerField(default=0)),
                ('answer_count', models.IntegerField(db_default=1, default=1)),
                ('duration_ms', models.IntegerField()),
                ('first_answered_at', models.DateTimeField(null=True)),
                ('answered_at', models.DateTimeField()),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('payment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='inquiry_answers', to='payments.payment')),
            ],
        ),
        migrations.RunSQL("SELECT operations_partition_by_month('reconciliation_inquiryanswer', 'payment_id')"),
        migrations.CreateModel(
            name='ReconciliationException',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('reason', models.CharField(choices=[('unmatched', 'Unknown reference'), ('duplicate', 'Paid twice'), ('time_mismatch', 'Paid too early'), ('amount_mismatch', 'Wrong amount'), ('late', 'Paid after expiry'), ('excess', 'Excess not sent back'), ('reversal', 'Reversed by the bank'), ('conflict', 'Contradicts an earlier message'), ('unreadable', 'Unreadable message'), ('fee_differs', 'Another fee than the terms'), ('moved', 'Of a merchant that has moved'), ('unconfirmed', 'Not confirmed by the bank'), ('returned', 'Refund came back'), ('contradiction', 'Bank contradicts our record')], max_length=16, verbose_name='reason')),
                ('bank', models.CharField(max_length=20)),
                ('is_sandbox', models.GeneratedField(db_persist=True, expression=models.Q(('bank', 'sandbox')), output_field=models.BooleanField())),
                ('biller_id', models.CharField(default='', max_length=15)),
                ('payment_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('amount', models.BigIntegerField(null=True)),
                ('reference1', models.CharField(max_length=35)),
                ('bank_reference', models.CharField(max_length=64)),
                ('opened_at', models.DateTimeField()),
                ('search_text', models.TextField(db_collation='C')),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='merchants.merchant')),
            ],
            options={
                'verbose_name': 'exception',
                'verbose_name_plural': 'exceptions',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Resolution',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('subject_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('type', models.CharField(choices=[('accepted', 'Accepted'), ('attached', 'Attached'), ('sent_back', 'Sent Back'), ('sent_back_by_hand', 'Sent Back By Hand'), ('excess_sent_back', 'Excess Sent Back'), ('merged', 'Merged'), ('undone', 'Undone'), ('dismissed', 'Dismissed'), ('kept', 'Kept'), ('written_off', 'Written Off'), ('booked_returned', 'Booked Returned'), ('booked_failed', 'Booked Failed'), ('reopened', 'Reopened'), ('acquirer', 'Acquirer'), ('confirmed', 'Confirmed')], max_length=17)),
                ('note', models.CharField(max_length=500)),
                ('payment_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('reopen_count', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('ledger_subject_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('merged_into_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['subject_id'], name='resolution_by_subject'), models.Index(condition=models.Q(('payment_id__isnull', False)), fields=['payment_id'], name='resolution_by_payment')],
                'constraints': [models.CheckConstraint(condition=models.Q(('type__in', ['accepted', 'attached', 'sent_back', 'sent_back_by_hand', 'excess_sent_back', 'merged', 'undone', 'dismissed', 'kept', 'written_off', 'booked_returned', 'booked_failed', 'reopened', 'acquirer', 'confirmed'])), name='resolution_type_known'), models.CheckConstraint(condition=models.Q(models.Q(('actor', ''), _negated=True), models.Q(('note', ''), _negated=True)), name='resolution_has_actor_and_note'), models.UniqueConstraint(condition=models.Q(('type__in', ['merged', 'undone', 'acquirer', 'dismissed', 'kept', 'written_off', 'booked_returned', 'booked_failed'])), fields=('subject_id', 'reopen_count'), name='resolution_ends_subject_once'), models.CheckConstraint(condition=models.Q(models.Q(('merged_into_id__isnull', False), ('type', 'merged')), models.Q(models.Q(('type', 'merged'), _negated=True), ('merged_into_id__isnull', True)), _connector='OR'), name='resolution_merged_into_iff_merged'), models.UniqueConstraint(condition=models.Q(('type', 'reopened')), fields=('subject_id', 'reopen_count'), name='resolution_reopens_subject_once'), models.UniqueConstraint(condition=models.Q(('type', 'confirmed')), fields=('subject_id',), name='resolution_confirms_subject_once'), models.UniqueConstraint(condition=models.Q(('type', 'written_off')), fields=('ledger_subject_id',), name='resolution_of_loss')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='resolution',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a resolution is never changed' USING ERRCODE = 'insufficient_privilege';", hash='70806b63565c488a1bc83fc9cd0eb9a0985ce1b1', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_1b58e', table='reconciliation_resolution', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='return',
            name='bank_transaction',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='returns', to='reconciliation.banktransaction'),
        ),
        migrations.AddConstraint(
            model_name='scancursor',
            constraint=models.CheckConstraint(condition=models.Q(('id', 1)), name='scancursor_single_row'),
        ),
        migrations.AddField(
            model_name='slipcheck',
            name='bank_transaction',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='slip_checks', to='reconciliation.banktransaction'),
        ),
        migrations.AddField(
            model_name='slipcheck',
            name='merchant',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant'),
        ),
        migrations.AddField(
            model_name='slipcheck',
            name='payment',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='payments.payment'),
        ),
        migrations.CreateModel(
            name='StatementImport',
            fields=[
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=7)),
                ('attempts', models.IntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(db_index=True, null=True)),
                ('statement', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='background_import', serialize=False, to='reconciliation.statement')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='statement',
            index=models.Index(fields=['created_at'], name='statement_newest_first'),
        ),
        migrations.AddConstraint(
            model_name='statement',
            constraint=models.CheckConstraint(condition=models.Q(('actor', ''), _negated=True), name='statement_has_actor'),
        ),
        migrations.AddConstraint(
            model_name='statement',
            constraint=models.CheckConstraint(condition=models.Q(('undone_at__isnull', True), models.Q(('completed_at__isnull', False), ('fee_count', 0)), _connector='OR'), name='statement_undone_after_its_end'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statement',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a statement is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='d05b99bab3c4f5ac621e7c12834ca117eab084d0', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_a0c8b', table='reconciliation_statement', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statement',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."actor" IS DISTINCT FROM NEW."actor" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."id" IS DISTINCT FROM NEW."id" OR OLD."bank" IS DISTINCT FROM NEW."bank" OR OLD."file_name" IS DISTINCT FROM NEW."file_name" OR OLD."file_sha256" IS DISTINCT FROM NEW."file_sha256" OR OLD."created_at" IS DISTINCT FROM NEW."created_at" OR OLD."line_count" IS DISTINCT FROM NEW."line_count")) THEN RAISE EXCEPTION \'a statement never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='427fcdd5726871c3f5c066b90afc7469b1a4a5cc', operation='UPDATE', pgid='pgtrigger_read_only_ea9fd', table='reconciliation_statement', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statement',
            trigger=pgtrigger.compiler.Trigger(name='final', sql=core.database.triggers.TriggerSql(func="IF (OLD.completed_at IS NOT NULL AND (OLD.undone_at IS NOT NULL OR NEW.undone_at IS NULL OR to_jsonb(NEW) - 'undone_at' <> to_jsonb(OLD) - 'undone_at')) THEN RAISE EXCEPTION 'a completed import never changes' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='d3026ec3f666d20118d2ffca58f59297971c2934', operation='UPDATE', pgid='pgtrigger_final_ef7e8', table='reconciliation_statement', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='statementline',
            name='bank_transaction',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='statement_line', to='reconciliation.banktransaction'),
        ),
        migrations.AddField(
            model_name='statementline',
            name='statement',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='reconciliation.statement'),
        ),
        migrations.AddConstraint(
            model_name='statementpart',
            constraint=models.UniqueConstraint(fields=('statement_id', 'number'), name='statementpart_once'),
        ),
        migrations.AddIndex(
            model_name='statementupload',
            index=models.Index(fields=['created_at'], name='statementupload_by_age'),
        ),
        migrations.AddConstraint(
            model_name='backoff',
            constraint=models.UniqueConstraint(fields=('bank', 'merchant'), name='backoff_one_per_merchant'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='notificationid',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'the ids of notifications are kept' USING ERRCODE = 'insufficient_privilege';", hash='341fd0afff3ffde5b277d47aa9b99864e6ae94db', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_6ae9b', table='reconciliation_notificationid', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='excess',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1)), name='excess_amount_positive'),
        ),
        migrations.AddConstraint(
            model_name='excess',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resolution_state', ''), ('resolved_at__isnull', True)), models.Q(('resolution_state__in', ['sending_back', 'sent_back', 'taken_back']), ('resolved_at__isnull', False)), _connector='OR'), name='excess_state_known'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='excess',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an excess is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='c4c951893ee9382b37e95c65caf416f5ce35e024', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_ab833', table='reconciliation_excess', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='excess',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."bank_transaction_id" IS DISTINCT FROM NEW."bank_transaction_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'an excess never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='4a64cf30f78a6052c744c1514ab280b9007fcf74', operation='UPDATE', pgid='pgtrigger_read_only_1ee4e', table='reconciliation_excess', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='excess',
            trigger=pgtrigger.compiler.Trigger(name='resolution_state_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.resolution_state NOT IN ('') AND NEW.resolution_state = OLD.resolution_state AND (NEW.resolved_at) IS DISTINCT FROM (OLD.resolved_at)) THEN RAISE EXCEPTION 'an excess keeps when it was resolved' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='6e8ad3c7f7ce644e4c08537b395d67f996da66f6', operation='UPDATE', pgid='pgtrigger_resolution_state_final_3bdc8', table='reconciliation_excess', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='excess',
            trigger=pgtrigger.compiler.Trigger(name='resolution_state_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.resolution_state NOT IN (''))", func="RAISE EXCEPTION 'an excess cannot begin like that' USING ERRCODE = 'check_violation';", hash='33f18889e35609471334894f8de098125fa69b3e', operation='INSERT', pgid='pgtrigger_resolution_state_initial_90d03', table='reconciliation_excess', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='excess',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.resolution_state <> NEW.resolution_state AND (OLD.resolution_state, NEW.resolution_state) NOT IN (('', 'sending_back'), ('', 'sent_back'), ('', 'taken_back'), ('sending_back', ''), ('sending_back', 'sent_back'), ('sending_back', 'taken_back'), ('sent_back', ''))) THEN RAISE EXCEPTION 'excess cannot change from % to %', OLD.resolution_state, NEW.resolution_state USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='430a8dc3f0a36e7235783b1dcfa70c22094ae2c7', operation='UPDATE', pgid='pgtrigger_transitions_0413c', table='reconciliation_excess', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(condition=models.Q(('match_result', '')), fields=['received_at'], name='banktxn_not_matched'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(fields=['reference1', 'biller_id', 'bank', 'source', 'amount'], name='banktxn_by_reference'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(condition=models.Q(('later_bank_reference', ''), _negated=True), fields=['reference1', 'biller_id', 'amount', 'bank'], name='banktxn_with_later_bank_id'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(condition=models.Q(('is_confirmed', False)), fields=['received_at'], name='banktxn_not_confirmed'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(condition=models.Q(('matched_at__isnull', False)), fields=['bank', 'paid_at'], name='banktxn_by_bank_day'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(django.db.models.functions.comparison.Collate(django.db.models.functions.text.Lower('payer_name'), 'C'), condition=models.Q(models.Q(('payer_name', ''), _negated=True), ('matched_at__isnull', False)), name='banktxn_by_payer_name'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(django.db.models.functions.comparison.Collate(models.Func(django.db.models.functions.text.Lower('payer_name'), models.Value(' '), models.Value(-1), function='split_part'), 'C'), condition=models.Q(('payer_name__contains', ' '), ('matched_at__isnull', False)), name='banktxn_by_payer_last_word'),
        ),
        migrations.AddIndex(
            model_name='banktransaction',
            index=models.Index(condition=models.Q(('slip_reference', ''), _negated=True), fields=['slip_reference'], name='banktxn_by_slip_reference'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.UniqueConstraint(fields=('bank_reference', 'bank', 'kind'), name='banktxn_unique'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.UniqueConstraint(condition=models.Q(('later_bank_reference', ''), _negated=True), fields=('later_bank_reference', 'bank', 'kind'), name='banktxn_unique_by_later_id'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.UniqueConstraint(models.F('payment'), models.Case(models.When(models.Q(('match_result', 'applied'), ('resolution_state__in', ['accepted', 'attached']), _connector='OR'), models.Value('')), default=models.F('id'), output_field=models.TextField()), condition=models.Q(('payment__isnull', False)), name='banktxn_credits_payment_once'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['credit', 'decline', 'reversal'])), name='banktxn_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('source__in', ['callback', 'inquiry', 'statement'])), name='banktxn_source_known'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('match_result__in', ['', 'applied', 'declined', 'reversed', 'ordered', 'unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late'])), name='banktxn_match_result_known'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('resolution_state__in', ['', 'accepted', 'attached', 'sending_back', 'sent_back', 'taken_back', 'merged', 'acquirer', 'undone', 'dismissed', 'written_off'])), name='banktxn_resolution_state_known'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resolution_state', ''), ('resolved_at__isnull', True)), models.Q(('match_result__in', ['unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late']), ('resolved_at__isnull', False), models.Q(('resolution_state', ''), _negated=True)), _connector='OR'), name='banktxn_only_held_are_resolved'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resolution_state__in', ['accepted', 'attached']), _negated=True), ('payment__isnull', False), _connector='OR'), name='banktxn_accepted_has_payment'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('resolution_state', ''), models.Q(('kind', 'credit'), models.Q(('resolution_state__in', ['dismissed', 'written_off']), _negated=True)), models.Q(('kind', 'reversal'), ('resolution_state__in', ['dismissed', 'written_off'])), _connector='OR'), name='banktxn_resolution_state_fits_kind'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resolution_state', 'undone'), _negated=True), models.Q(('is_confirmed', False), ('later_bank_reference', ''), ('match_result', 'unmatched'), ('source', 'statement')), _connector='OR'), name='banktxn_undone_was_alone'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='banktxn_amount_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='banktransaction',
            constraint=models.CheckConstraint(condition=models.Q(('is_confirmed', True), models.Q(('kind', 'credit'), ('source', 'statement')), _connector='OR'), name='banktxn_unconfirmed_from_statement'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a bank transaction is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='cedf6621607bd9b90b1d15f3a443d6edc61a32c1', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_5639c', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."bank" IS DISTINCT FROM NEW."bank" OR OLD."bank_reference" IS DISTINCT FROM NEW."bank_reference" OR OLD."source" IS DISTINCT FROM NEW."source" OR OLD."kind" IS DISTINCT FROM NEW."kind" OR OLD."biller_id" IS DISTINCT FROM NEW."biller_id" OR OLD."reference1" IS DISTINCT FROM NEW."reference1" OR OLD."reference2" IS DISTINCT FROM NEW."reference2" OR OLD."reference3" IS DISTINCT FROM NEW."reference3" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."paid_at" IS DISTINCT FROM NEW."paid_at" OR OLD."received_at" IS DISTINCT FROM NEW."received_at") OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."later_bank_reference" IS DISTINCT FROM NEW."later_bank_reference" OR OLD."payer_name" IS DISTINCT FROM NEW."payer_name" OR OLD."payer_bank_code" IS DISTINCT FROM NEW."payer_bank_code" OR OLD."payer_account_digest" IS DISTINCT FROM NEW."payer_account_digest" OR OLD."slip_reference" IS DISTINCT FROM NEW."slip_reference" OR OLD."is_confirmed" IS DISTINCT FROM NEW."is_confirmed" OR OLD."match_result" IS DISTINCT FROM NEW."match_result" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."matched_at" IS DISTINCT FROM NEW."matched_at" OR OLD."resolution_state" IS DISTINCT FROM NEW."resolution_state" OR OLD."resolved_at" IS DISTINCT FROM NEW."resolved_at")) THEN RAISE EXCEPTION \'a bank transaction is kept as its bank reported it\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='47633177f1ebf9cd92e768eb6f69e9fd2bcfaf63', operation='UPDATE', pgid='pgtrigger_read_only_969c6', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='resolution_state_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.resolution_state NOT IN ('') AND NEW.resolution_state = OLD.resolution_state AND (NEW.resolved_at) IS DISTINCT FROM (OLD.resolved_at)) THEN RAISE EXCEPTION 'a bank transaction keeps when it was resolved' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='c7d3bdea977f2d6278f6d82020182d3e2186a19d', operation='UPDATE', pgid='pgtrigger_resolution_state_final_70694', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='match_result_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.match_result NOT IN ('') AND NEW.match_result = OLD.match_result AND (NEW.matched_at) IS DISTINCT FROM (OLD.matched_at)) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='a6348be257ed895573365f54821da8e06a29df96', operation='UPDATE', pgid='pgtrigger_match_result_final_f7d40', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='payer_name_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_name <> '' AND NEW.payer_name IS DISTINCT FROM OLD.payer_name AND (current_setting('qr.erasing', true) IS NOT DISTINCT FROM 'on' AND coalesce(NEW.payer_name, '') = '' AND (OLD.match_result <> '' AND NOT (OLD.resolution_state IN ('', 'sending_back')\n    AND OLD.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late')))) IS NOT TRUE) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='357b86b4b2047f1606fb7a1d0cfdfd1733ddeb0c', operation='UPDATE', pgid='pgtrigger_payer_name_set_once_f13ce', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='payer_bank_code_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_bank_code <> '' AND NEW.payer_bank_code IS DISTINCT FROM OLD.payer_bank_code) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='0e5fd251aa3f634ec1099ba9d223fce6b87ed906', operation='UPDATE', pgid='pgtrigger_payer_bank_code_set_once_b1b97', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='payer_account_sealed_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_account_sealed <> '' AND NEW.payer_account_sealed IS DISTINCT FROM OLD.payer_account_sealed AND (current_setting('qr.resealing', true) IS NOT DISTINCT FROM 'on' AND substr(OLD.payer_account_sealed, 1, 7) = 'sealed:' AND substr(NEW.payer_account_sealed, 1, 7) = 'sealed:') IS NOT TRUE AND (current_setting('qr.erasing', true) IS NOT DISTINCT FROM 'on' AND coalesce(NEW.payer_account_sealed, '') = '' AND (OLD.match_result <> '' AND NOT (OLD.resolution_state IN ('', 'sending_back')\n    AND OLD.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late')))) IS NOT TRUE) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='338bbbdbe8860d3faf06ad3b3c618ee6a1918628', operation='UPDATE', pgid='pgtrigger_payer_account_sealed_set_once_59d5a', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='payer_account_digest_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_account_digest <> '' AND NEW.payer_account_digest IS DISTINCT FROM OLD.payer_account_digest) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='d1a33661a039837e0cc201224e7fde5b0381dfe9', operation='UPDATE', pgid='pgtrigger_payer_account_digest_set_once_ef691', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='slip_reference_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.slip_reference <> '' AND NEW.slip_reference IS DISTINCT FROM OLD.slip_reference) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='3f31746ec14f8f95a912907c75742f8d826185f8', operation='UPDATE', pgid='pgtrigger_slip_reference_set_once_f7278', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='account_with_digest', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_account_sealed = '' AND NEW.payer_account_sealed <> '' AND (OLD.payer_account_digest <> '' OR NEW.payer_account_digest = '')) THEN RAISE EXCEPTION 'a bank transaction is kept as its bank reported it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='d0a3a6d451335c65242329a50554e1e0eef2f848', operation='UPDATE', pgid='pgtrigger_account_with_digest_001dd', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='bank_id_set_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.later_bank_reference <> OLD.later_bank_reference AND (OLD.later_bank_reference <> '' OR OLD.source <> 'statement')) THEN RAISE EXCEPTION 'a bank transaction keeps its ids' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='349fe01d4cc70b9ad23f61207ebc1743e0707aaa', operation='UPDATE', pgid='pgtrigger_bank_id_set_once_bb202', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='matched_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.match_result <> OLD.match_result AND OLD.match_result <> '' AND NOT (OLD.kind = 'reversal' AND OLD.resolution_state = '' AND OLD.match_result = 'unmatched' AND NEW.match_result IN ('reversed', 'ordered'))) THEN RAISE EXCEPTION 'a bank transaction is matched once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='7471f020a59240172b88f140d536ccc9f2fa5ae2', operation='UPDATE', pgid='pgtrigger_matched_once_85809', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='match_result_fits_kind', sql=core.database.triggers.TriggerSql(func="IF (NEW.match_result <> OLD.match_result AND (CASE NEW.kind\n                    WHEN 'credit' THEN NEW.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late')\n                        OR NEW.match_result = 'applied' AND NEW.payment_id IS NOT NULL\n                    WHEN 'decline' THEN NEW.match_result = 'declined'\n                    ELSE NEW.match_result IN ('unmatched', 'reversed', 'ordered')\n                END) IS NOT TRUE) THEN RAISE EXCEPTION 'this kind of bank transaction cannot have this result' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='3d55748306ea506fbd5356d8deb456478d0c5cd6', operation='UPDATE', pgid='pgtrigger_match_result_fits_kind_c8310', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.resolution_state <> NEW.resolution_state AND (OLD.resolution_state, NEW.resolution_state) NOT IN (('', 'accepted'), ('', 'acquirer'), ('', 'attached'), ('', 'dismissed'), ('', 'merged'), ('', 'sending_back'), ('', 'sent_back'), ('', 'taken_back'), ('', 'undone'), ('', 'written_off'), ('sending_back', ''), ('sending_back', 'sent_back'), ('sending_back', 'taken_back'), ('sent_back', ''), ('merged', ''), ('dismissed', ''), ('written_off', ''))) THEN RAISE EXCEPTION 'bank transaction cannot change from % to %', OLD.resolution_state, NEW.resolution_state USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='ffb30e3bcd8b76b1637048559be909f350d9b7d9', operation='UPDATE', pgid='pgtrigger_transitions_cd825', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='keeps_its_payment', sql=core.database.triggers.TriggerSql(func="IF (NEW.match_result = OLD.match_result AND (NEW.payment_id, NEW.merchant_id) IS DISTINCT FROM (OLD.payment_id, OLD.merchant_id) AND NOT (OLD.resolution_state = '' AND NEW.resolution_state = 'attached')) THEN RAISE EXCEPTION 'a bank transaction keeps its payment' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='1b80991cb84ad1b094c46429b18ed350b02af666', operation='UPDATE', pgid='pgtrigger_keeps_its_payment_80a1b', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='stays_confirmed', sql=core.database.triggers.TriggerSql(func="IF (OLD.is_confirmed AND NOT NEW.is_confirmed) THEN RAISE EXCEPTION 'confirmed money stays confirmed' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='5f70ef376638e6aed76b20ff3d2d257885ac25a1', operation='UPDATE', pgid='pgtrigger_stays_confirmed_9bb61', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banktransaction',
            trigger=pgtrigger.compiler.Trigger(name='statement_is_unconfirmed', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.source = 'statement' AND NEW.kind = 'credit' AND NEW.is_confirmed)", func="RAISE EXCEPTION 'only the bank or a second person confirms money' USING ERRCODE = 'check_violation';", hash='d29c9d631d88061c3bd980f6aab5574c01133a74', operation='INSERT', pgid='pgtrigger_statement_is_unconfirmed_97a07', table='reconciliation_banktransaction', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='banknotification',
            index=models.Index(condition=models.Q(('order_id__isnull', False)), fields=['order_id'], name='notification_by_order'),
        ),
        migrations.AddConstraint(
            model_name='banknotification',
            constraint=models.CheckConstraint(condition=models.Q(('result__in', ['new', 'repeat', 'conflict', 'unreadable', 'fee_differs', 'moved', 'unsigned'])), name='notification_result_known'),
        ),
        migrations.AddConstraint(
            model_name='banknotification',
            constraint=models.UniqueConstraint(condition=models.Q(('result', 'fee_differs')), fields=('bank_transaction',), name='notification_of_fee_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banknotification',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a notification of a bank is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='ba7eb14b948dde82cfe9b7b7afe8f4cce2f16c1e', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_ad06a', table='reconciliation_banknotification', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='banknotification',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."bank" IS DISTINCT FROM NEW."bank" OR OLD."source" IS DISTINCT FROM NEW."source" OR OLD."body_digest" IS DISTINCT FROM NEW."body_digest" OR OLD."result" IS DISTINCT FROM NEW."result" OR OLD."bank_transaction_id" IS DISTINCT FROM NEW."bank_transaction_id" OR OLD."order_id" IS DISTINCT FROM NEW."order_id" OR OLD."received_at" IS DISTINCT FROM NEW."received_at" OR OLD."request_id" IS DISTINCT FROM NEW."request_id") OR OLD."body_sealed" IS DISTINCT FROM NEW."body_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.body_sealed, 1, 7) = \'sealed:\' AND substr(NEW.body_sealed, 1, 7) = \'sealed:\') IS NOT TRUE AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.body_sealed, \'\') = \'\' AND (true)) IS NOT TRUE) THEN RAISE EXCEPTION \'a notification of a bank never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='62d34d920c0287721f6780fa62f01be57aa78ed5', operation='UPDATE', pgid='pgtrigger_read_only_36f5e', table='reconciliation_banknotification', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='confirmationinquiry',
            index=models.Index(condition=models.Q(('due_at__isnull', False)), fields=['bank', 'is_urgent', 'due_at'], name='confirmationinquiry_priority'),
        ),
        migrations.AddIndex(
            model_name='confirmationinquiry',
            index=models.Index(condition=models.Q(('payment_id__isnull', False)), fields=['payment_id'], name='confirmation_by_payment'),
        ),
        migrations.AddConstraint(
            model_name='confirmationinquiry',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('bank_reference', ''), ('bank_transaction__isnull', False), ('notification__isnull', True)), models.Q(('bank_transaction__isnull', True), ('notification__isnull', False), models.Q(('bank_reference', ''), _negated=True)), _connector='OR'), name='confirmation_has_one_cause'),
        ),
        migrations.AddConstraint(
            model_name='confirmationinquiry',
            constraint=models.CheckConstraint(condition=models.Q(('confirmed_at__isnull', True), ('due_at__isnull', True), _connector='OR'), name='confirmation_not_due_when_confirmed'),
        ),
        migrations.AddConstraint(
            model_name='confirmationinquiry',
            constraint=models.UniqueConstraint(condition=models.Q(('notification__isnull', False)), fields=('bank', 'bank_reference', 'biller_id', 'reference1'), name='confirmation_once_per_notification'),
        ),
        migrations.AddIndex(
            model_name='inquiryanswer',
            index=models.Index(fields=['payment'], name='inquiryanswer_of_payment'),
        ),
        migrations.AddConstraint(
            model_name='inquiryanswer',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__in', ['found', 'nothing', 'no_answer', 'unreadable'])), name='inquiryanswer_outcome_known'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='inquiryanswer',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an answer of a bank is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='7ef49e8d5212bb5db3b5a53f3bc39bdbdd171dea', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_f6d24', table='reconciliation_inquiryanswer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='inquiryanswer',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."outcome" IS DISTINCT FROM NEW."outcome" OR OLD."transaction_count" IS DISTINCT FROM NEW."transaction_count")) THEN RAISE EXCEPTION \'an answer of a bank is never changed\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='f3b02653ae1e95287109de8ce080afcccf84a9a8', operation='UPDATE', pgid='pgtrigger_read_only_fa417', table='reconciliation_inquiryanswer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='inquiryanswer',
            trigger=pgtrigger.compiler.Trigger(name='answers_grow', sql=core.database.triggers.TriggerSql(func="IF (NEW.answer_count <= OLD.answer_count) THEN RAISE EXCEPTION 'the same answer of a bank can only come again' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='9d4236bf14c9f188e157a4b241ef8f740de18ec6', operation='UPDATE', pgid='pgtrigger_answers_grow_64619', table='reconciliation_inquiryanswer', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['is_sandbox', 'opened_at', 'id'], name='exception_live_first'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['reason', 'is_sandbox', 'opened_at', 'id'], name='exception_live_by_reason'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['bank', 'is_sandbox', 'opened_at', 'id'], name='exception_live_by_bank'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['merchant', 'is_sandbox', 'opened_at', 'id'], name='exception_live_by_merchant'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['opened_at', 'id'], name='exception_oldest_first'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['reason', 'opened_at', 'id'], name='exception_by_reason'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(fields=['amount', 'opened_at', 'id'], name='exception_by_amount'),
        ),
        migrations.AddIndex(
            model_name='reconciliationexception',
            index=models.Index(condition=models.Q(('reason', 'unmatched')), fields=['bank', 'biller_id', 'amount', 'opened_at'], name='exception_unmatched'),
        ),
        migrations.AddIndex(
            model_name='return',
            index=models.Index(fields=['bank_transaction'], name='return_by_bank_transaction'),
        ),
        migrations.AddIndex(
            model_name='return',
            index=models.Index(condition=models.Q(('bank_reference', ''), _negated=True), fields=['bank_reference'], name='return_by_bank_reference'),
        ),
        migrations.AddConstraint(
            model_name='return',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'completed', 'failed', 'canceled'])), name='return_status_known'),
        ),
        migrations.AddConstraint(
            model_name='return',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1)), name='return_amount_positive'),
        ),
        migrations.AddConstraint(
            model_name='return',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', False), ('status', 'completed')), models.Q(models.Q(('status', 'completed'), _negated=True), ('completed_at__isnull', True), ('returned_at__isnull', True)), _connector='OR'), name='return_completed_has_time'),
        ),
        migrations.AddConstraint(
            model_name='return',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'failed'), models.Q(('failure_code', ''), _negated=True)), models.Q(models.Q(('status', 'failed'), _negated=True), ('failure_code', '')), _connector='OR'), name='return_failure_code_iff_failed'),
        ),
        migrations.AddConstraint(
            model_name='return',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'pending'), models.Q(('returned_at__isnull', True), ('status', 'completed')), _connector='OR'), fields=('bank_transaction',), name='return_one_active_per_bank_transaction'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='return',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a return is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='669959912296a45e6bb3daabec97a114e066f543', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_8ceba', table='reconciliation_return', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='return',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."bank_transaction_id" IS DISTINCT FROM NEW."bank_transaction_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."route" IS DISTINCT FROM NEW."route" OR OLD."account_digest" IS DISTINCT FROM NEW."account_digest" OR OLD."is_manual" IS DISTINCT FROM NEW."is_manual" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'the order of a return never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='c203fd0d43ad86614a97cea3382504a16defd85a', operation='UPDATE', pgid='pgtrigger_read_only_e5077', table='reconciliation_return', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='return',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('pending', 'canceled'), ('pending', 'completed'), ('pending', 'failed'))) THEN RAISE EXCEPTION 'return cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='6106af15100cc3530f60426d6c7466fdfd0304cc', operation='UPDATE', pgid='pgtrigger_transitions_f77bd', table='reconciliation_return', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='return',
            trigger=pgtrigger.compiler.Trigger(name='returned_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at) THEN RAISE EXCEPTION 'the time at which a return came back never changes' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='498e4e330dcddef90ca3e425a2f5cd9277796540', operation='UPDATE', pgid='pgtrigger_returned_at_set_once_9aeda', table='reconciliation_return', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='return',
            trigger=pgtrigger.compiler.Trigger(name='status_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.status NOT IN ('pending') AND NEW.status = OLD.status AND (NEW.completed_at, NEW.bank_reference, NEW.failure_code) IS DISTINCT FROM (OLD.completed_at, OLD.bank_reference, OLD.failure_code)) THEN RAISE EXCEPTION 'the end of a return never changes' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='3a6540e374e4f0c3d70a97b7f142e8a95e1ba77a', operation='UPDATE', pgid='pgtrigger_status_final_fdd69', table='reconciliation_return', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='slipcheck',
            index=models.Index(condition=models.Q(('claimed_payment_id__isnull', False)), fields=['claimed_payment_id'], name='slipcheck_of_payment'),
        ),
        migrations.AddIndex(
            model_name='slipcheck',
            index=models.Index(fields=['transaction_id', 'sending_bank'], name='slipcheck_of_slip'),
        ),
        migrations.AddIndex(
            model_name='slipcheck',
            index=models.Index(fields=['checked_at'], name='slipcheck_newest_first'),
        ),
        migrations.AddIndex(
            model_name='slipcheck',
            index=models.Index(condition=models.Q(('is_first', False)), fields=['checked_at'], name='slipcheck_to_delete'),
        ),
        migrations.AddConstraint(
            model_name='slipcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('merchant__isnull', True), ('payment__isnull', True), ('verdict', '')), models.Q(('merchant__isnull', False), ('verdict__in', ['valid', 'repeated', 'wrong_amount', 'wrong_receiver', 'not_found', 'unreadable', 'unknown'])), _connector='OR'), name='slipcheck_merchant_gets_verdict'),
        ),
        migrations.AddConstraint(
            model_name='slipcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('verdict__in', ['wrong_receiver', 'unreadable']), _negated=True), ('payment__isnull', True), _connector='OR'), name='slipcheck_shows_nothing_of_others'),
        ),
        migrations.AddConstraint(
            model_name='slipcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('verdict__in', ['valid', 'repeated', 'wrong_amount']), _negated=True), ('payment__isnull', False), _connector='OR'), name='slipcheck_money_has_payment'),
        ),
        migrations.AddConstraint(
            model_name='slipcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('verdict', 'valid'), _negated=True), models.Q(('claimed_payment_id__isnull', True), ('is_first', True)), models.Q(('claimed_payment_id', models.F('payment_id')), ('claimed_payment_id__isnull', False)), _connector='OR'), name='slipcheck_valid_for_one_payment'),
        ),
        migrations.AddConstraint(
            model_name='slipcheck',
            constraint=models.CheckConstraint(condition=models.Q(('is_first', False), ('verdict', 'valid'), _connector='OR'), name='slipcheck_first_is_valid'),
        ),
        migrations.AddConstraint(
            model_name='slipcheck',
            constraint=models.UniqueConstraint(condition=models.Q(('is_first', True)), fields=('payment',), name='slipcheck_first_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='slipcheck',
            trigger=pgtrigger.compiler.Trigger(name='no_update', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a slip check is never changed' USING ERRCODE = 'insufficient_privilege';", hash='c28186c48c41ff210c2d01ec974dee21eaf14481', level='STATEMENT', operation='UPDATE OR TRUNCATE', pgid='pgtrigger_no_update_bca35', table='reconciliation_slipcheck', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='slipcheck',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(condition="WHEN (OLD.is_first OR OLD.checked_at > now() - interval '29 days')", func="RAISE EXCEPTION 'a slip check is kept' USING ERRCODE = 'insufficient_privilege';", hash='9ee0ca935ab2247473565bb114335ae4bb923ad3', operation='DELETE', pgid='pgtrigger_keep_rows_88483', table='reconciliation_slipcheck', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='statementimport',
            index=models.Index(condition=models.Q(('state__in', ('waiting', 'running'))), fields=['created_at'], name='statementimport_open'),
        ),
        migrations.AddConstraint(
            model_name='statementimport',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'running', 'done', 'failed'])), name='statementimport_state_known'),
        ),
        migrations.AddIndex(
            model_name='statementline',
            index=models.Index(fields=['bank', 'bank_date'], name='statementline_of_day'),
        ),
        migrations.AddIndex(
            model_name='statementline',
            index=models.Index(condition=models.Q(('kind', 'credit')), fields=['reference1', 'amount', 'biller_id', 'bank'], name='statementline_of_credit'),
        ),
        migrations.AddIndex(
            model_name='statementline',
            index=models.Index(condition=models.Q(('result', 'unreadable')), fields=['statement'], name='statementline_unreadable'),
        ),
        migrations.AddIndex(
            model_name='statementline',
            index=models.Index(condition=models.Q(('is_fee_due', True)), fields=['id'], name='statementline_fee_due'),
        ),
        migrations.AddConstraint(
            model_name='statementline',
            constraint=models.UniqueConstraint(fields=('line_sha256', 'occurrence', 'bank', 'biller_id', 'bank_date'), name='statementline_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='statementline',
            constraint=models.CheckConstraint(condition=models.Q(('result__in', ['attached', 'new', 'unreadable'])), name='statementline_result_known'),
        ),
        migrations.AddConstraint(
            model_name='statementline',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('bank_transaction__isnull', False), ('result__in', ['attached', 'new'])), models.Q(('bank_transaction__isnull', True), ('result', 'unreadable')), _connector='OR'), name='statementline_bank_transaction_iff_read'),
        ),
        migrations.AddConstraint(
            model_name='statementline',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('fee__isnull', True), ('fee_vat__isnull', True), ('is_fee_due', False)), models.Q(('amount__isnull', False), ('fee__isnull', False), ('fee_vat__isnull', False), ('fee__gte', 0), ('fee__lte', django.db.models.expressions.CombinedExpression(models.F('amount'), '-', models.F('fee_vat'))), ('fee_vat__gte', 0)), _connector='OR'), name='statementline_fee_within_amount'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statementline',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a line of a statement is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='a5613e9bf23e59dbc1c011cc6e051c81626084be', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_82aeb', table='reconciliation_statementline', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statementline',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."statement_id" IS DISTINCT FROM NEW."statement_id" OR OLD."line_number" IS DISTINCT FROM NEW."line_number" OR OLD."bank" IS DISTINCT FROM NEW."bank" OR OLD."biller_id" IS DISTINCT FROM NEW."biller_id" OR OLD."bank_date" IS DISTINCT FROM NEW."bank_date" OR OLD."line_sha256" IS DISTINCT FROM NEW."line_sha256" OR OLD."occurrence" IS DISTINCT FROM NEW."occurrence" OR OLD."error" IS DISTINCT FROM NEW."error" OR OLD."kind" IS DISTINCT FROM NEW."kind" OR OLD."reference1" IS DISTINCT FROM NEW."reference1" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."paid_at" IS DISTINCT FROM NEW."paid_at") OR OLD."line_sealed" IS DISTINCT FROM NEW."line_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.line_sealed, 1, 7) = \'sealed:\' AND substr(NEW.line_sealed, 1, 7) = \'sealed:\') IS NOT TRUE AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.line_sealed, \'\') = \'\' AND (true)) IS NOT TRUE OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."result" IS DISTINCT FROM NEW."result" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."is_fee_due" IS DISTINCT FROM NEW."is_fee_due" OR OLD."bank_transaction_id" IS DISTINCT FROM NEW."bank_transaction_id") OR current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."result" IS DISTINCT FROM NEW."result" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."is_fee_due" IS DISTINCT FROM NEW."is_fee_due" OR OLD."bank_transaction_id" IS DISTINCT FROM NEW."bank_transaction_id")) THEN RAISE EXCEPTION \'a line of a statement never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='899b47c01c946751d1164d810abdcf0f9d0bbe67', operation='UPDATE', pgid='pgtrigger_read_only_a364d', table='reconciliation_statementline', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statementline',
            trigger=pgtrigger.compiler.Trigger(name='fee_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.fee IS NOT NULL AND NEW.fee IS DISTINCT FROM OLD.fee) THEN RAISE EXCEPTION 'a line of a statement keeps its fee' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='9aa470936a694f8cbf7d02b99e365b771c80c5d9', operation='UPDATE', pgid='pgtrigger_fee_set_once_f1ea9', table='reconciliation_statementline', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statementline',
            trigger=pgtrigger.compiler.Trigger(name='fee_vat_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.fee_vat IS NOT NULL AND NEW.fee_vat IS DISTINCT FROM OLD.fee_vat) THEN RAISE EXCEPTION 'a line of a statement keeps its fee' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='2ebf20c65d58ac78bb81dda99869be786cdae5ea', operation='UPDATE', pgid='pgtrigger_fee_vat_set_once_ae53c', table='reconciliation_statementline', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statementline',
            trigger=pgtrigger.compiler.Trigger(name='fee_due_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.is_fee_due AND NOT OLD.is_fee_due AND OLD.fee IS NOT NULL) THEN RAISE EXCEPTION 'a fee is compared with its payment once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='018cadb7ad02a28d685de7999f26979c78074ef6', operation='UPDATE', pgid='pgtrigger_fee_due_once_cc71f', table='reconciliation_statementline', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='statementline',
            trigger=pgtrigger.compiler.Trigger(name='matched_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.result <> '' AND (NEW.result, NEW.bank_transaction_id) IS DISTINCT FROM (OLD.result, OLD.bank_transaction_id)) THEN RAISE EXCEPTION 'a line of a statement is matched once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='e09c967b542443d46c293f4818045c95ad140544', operation='UPDATE', pgid='pgtrigger_matched_once_5b6f1', table='reconciliation_statementline', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
