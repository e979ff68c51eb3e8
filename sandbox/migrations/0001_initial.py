import core.database.columns
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='SandboxOrder',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('reference', models.CharField(max_length=64, unique=True)),
                ('type', models.CharField(choices=[('refund', 'Refund'), ('payout', 'Payout')], max_length=6)),
                ('amount', models.BigIntegerField()),
                ('bank_code', models.CharField(max_length=3)),
                ('account_sealed', models.TextField(editable=False)),
                ('account_name', models.CharField(max_length=140)),
                ('reason', models.CharField(blank=True, default='', max_length=30)),
                ('completes_at', models.DateTimeField()),
                ('returns_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='SandboxCharge',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('order_id', models.CharField(max_length=31, unique=True)),
                ('amount', models.BigIntegerField()),
                ('brand', models.CharField(max_length=20)),
                ('last4', models.CharField(max_length=4)),
                ('failure_code', models.CharField(blank=True, default='', max_length=30)),
                ('authorization', models.CharField(blank=True, choices=[('', 'not required'), ('pending', 'Pending'), ('authorized', 'Authorized'), ('refused', 'Refused')], db_default='', default='', max_length=10)),
                ('return_uri', models.TextField(blank=True, db_default='', default='')),
                ('refunded', models.BigIntegerField(default=0)),
                ('fee', models.BigIntegerField()),
                ('fee_vat', models.BigIntegerField()),
                ('fault', models.CharField(blank=True, choices=[('', 'none'), ('fee_late', 'Fee Late'), ('fee_changed', 'Fee Changed'), ('vat_rounded_up', 'Vat Rounded Up'), ('not_settled', 'Not Settled'), ('short_transfer', 'Short Transfer'), ('transferred_twice', 'Transferred Twice')], default='', max_length=20)),
                ('transferable_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('failure_code', ''), ('settled_at', None)), fields=['transferable_at'], name='sandboxcharge_to_settle')],
                'constraints': [models.CheckConstraint(condition=models.Q(('fault__in', ['', 'fee_late', 'fee_changed', 'vat_rounded_up', 'not_settled', 'short_transfer', 'transferred_twice'])), name='sandboxcharge_fault_known'), models.CheckConstraint(condition=models.Q(('refunded__gte', 0), ('refunded__lte', models.F('amount'))), name='sandboxcharge_refunds'), models.CheckConstraint(condition=models.Q(('authorization__in', ['', 'pending', 'authorized', 'refused'])), name='sandboxcharge_authorization_known')],
            },
        ),
        migrations.CreateModel(
            name='SandboxCardRefund',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('order_id', models.CharField(max_length=31, unique=True)),
                ('amount', models.BigIntegerField()),
                ('settled_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('charge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refunds', to='sandbox.sandboxcharge')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='SandboxPayment',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('qr_data', models.TextField()),
                ('scenario', models.CharField(max_length=30)),
                ('biller_id', models.CharField(max_length=15)),
                ('reference1', models.CharField(max_length=20)),
                ('reference2', models.CharField(blank=True, default='', max_length=20)),
                ('reference3', models.CharField(blank=True, default='', max_length=26)),
                ('amount', models.BigIntegerField()),
                ('payer_name', models.CharField(max_length=140)),
                ('payer_bank_code', models.CharField(max_length=3)),
                ('payer_account', models.CharField(max_length=15)),
                ('slip_reference', models.CharField(max_length=25)),
                ('paid_at', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['biller_id', 'reference1'], name='sandboxpayment_of_code')],
                'constraints': [models.UniqueConstraint(fields=('slip_reference',), name='sandboxpayment_slip_once')],
            },
        ),
        migrations.CreateModel(
            name='SandboxEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('type', models.CharField(choices=[('credit', 'Credit'), ('decline', 'Decline'), ('reversal', 'Reversal')], max_length=8)),
                ('occurred_at', models.DateTimeField()),
                ('booked_at', models.DateTimeField()),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='sandbox.sandboxpayment')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='SandboxCallback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('body', models.TextField()),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('given_up', 'Given Up')], default='waiting', max_length=9)),
                ('due_at', models.DateTimeField()),
                ('attempts', models.IntegerField(default=0)),
                ('last_status', models.SmallIntegerField(null=True)),
                ('last_error', models.CharField(blank=True, default='', max_length=200)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('order', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='callbacks', to='sandbox.sandboxorder')),
                ('payment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='callbacks', to='sandbox.sandboxpayment')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='SandboxTransfer',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('amount', models.BigIntegerField()),
                ('fee', models.BigIntegerField()),
                ('fee_vat', models.BigIntegerField()),
                ('paid_at', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['created_at', 'id'], name='sandboxtransfer_by_time')],
            },
        ),
        migrations.CreateModel(
            name='SandboxSettledItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('amount', models.BigIntegerField()),
                ('fee', models.BigIntegerField()),
                ('fee_vat', models.BigIntegerField()),
                ('charge', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='sandbox.sandboxcharge')),
                ('refund', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='sandbox.sandboxcardrefund')),
                ('transfer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='sandbox.sandboxtransfer')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='sandboxcardrefund',
            index=models.Index(condition=models.Q(('settled_at', None)), fields=['created_at'], name='sandboxcardrefund_to_settle'),
        ),
        migrations.AddIndex(
            model_name='sandboxentry',
            index=models.Index(fields=['occurred_at', 'id'], name='sandboxentry_by_time'),
        ),
        migrations.AddConstraint(
            model_name='sandboxentry',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['credit', 'decline', 'reversal'])), name='sandboxentry_type_known'),
        ),
        migrations.AddConstraint(
            model_name='sandboxentry',
            constraint=models.UniqueConstraint(fields=('payment', 'type'), name='sandboxentry_once'),
        ),
        migrations.AddIndex(
            model_name='sandboxcallback',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['due_at', 'id'], name='sandboxcallback_next_due'),
        ),
        migrations.AddConstraint(
            model_name='sandboxcallback',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'delivered', 'given_up'])), name='sandboxcallback_state_known'),
        ),
        migrations.AddConstraint(
            model_name='sandboxcallback',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('order__isnull', False), ('payment__isnull', True)), models.Q(('order__isnull', True), ('payment__isnull', False)), _connector='OR'), name='sandboxcallback_has_one_subject'),
        ),
        migrations.AddConstraint(
            model_name='sandboxsettleditem',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('charge__isnull', True), ('refund__isnull', False)), models.Q(('charge__isnull', False), ('refund__isnull', True)), _connector='OR'), name='sandboxsettleditem_has_one_subject'),
        ),
    ]
