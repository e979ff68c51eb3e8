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
                ('reference', models.CharField(help_text="The service's id of the order.", max_length=64, unique=True)),
                ('type', models.CharField(choices=[('refund', 'Refund'), ('payout', 'Payout')], max_length=6)),
                ('amount', models.BigIntegerField(help_text='Satang.')),
                ('bank_code', models.CharField(max_length=3)),
                ('account_sealed', models.TextField(editable=False)),
                ('account_name', models.CharField(max_length=140)),
                ('reason', models.CharField(blank=True, default='', help_text='Why it fails or is returned.', max_length=30)),
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
                ('order_id', models.CharField(help_text="The service's id. One order is charged once.", max_length=31, unique=True)),
                ('amount', models.BigIntegerField(help_text='Satang.')),
                ('brand', models.CharField(max_length=20)),
                ('last4', models.CharField(max_length=4)),
                ('failure_code', models.CharField(blank=True, default='', help_text='Empty if it succeeded.', max_length=30)),
                ('authorization', models.CharField(blank=True, choices=[('', 'not required'), ('pending', 'Pending'), ('authorized', 'Authorized'), ('refused', 'Refused')], db_default='', default='', max_length=10)),
                ('return_uri', models.TextField(blank=True, db_default='', default='', help_text="Where the payer's browser goes after 3-D Secure.")),
                ('refunded', models.BigIntegerField(default=0, help_text='Refunded satang.')),
                ('fee', models.BigIntegerField(help_text='What the acquirer keeps, in satang.')),
                ('fee_vat', models.BigIntegerField(help_text='The VAT on the fee, in satang. The acquirer keeps it too.')),
                ('fault', models.CharField(blank=True, choices=[('', 'none'), ('fee_late', 'Fee Late'), ('fee_changed', 'Fee Changed'), ('vat_rounded_up', 'Vat Rounded Up'), ('not_settled', 'Not Settled'), ('short_transfer', 'Short Transfer'), ('transferred_twice', 'Transferred Twice')], default='', max_length=20)),
                ('transferable_at', models.DateTimeField(help_text='Transfers pay the charge from this time on.')),
                ('settled_at', models.DateTimeField(help_text='When a transfer paid the charge.', null=True)),
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
                ('order_id', models.CharField(help_text="The service's id. One order is refunded once.", max_length=31, unique=True)),
                ('amount', models.BigIntegerField(help_text='Satang.')),
                ('settled_at', models.DateTimeField(help_text='When a transfer was reduced by it.', null=True)),
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
                ('amount', models.BigIntegerField(help_text='Satang.')),
                ('payer_name', models.CharField(max_length=140)),
                ('payer_bank_code', models.CharField(max_length=3)),
                ('payer_account', models.CharField(max_length=15)),
                ('slip_reference', models.CharField(help_text="The id of the transfer on the payer's slip.", max_length=25)),
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
                ('occurred_at', models.DateTimeField(help_text="The bank's time.")),
                ('booked_at', models.DateTimeField(help_text='Inquiries and statements show it from this time on.')),
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
                ('due_at', models.DateTimeField(help_text='The next attempt; during an attempt, the end of its lease.')),
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
                ('amount', models.BigIntegerField(help_text='What leaves the balance at the acquirer, in satang.')),
                ('fee', models.BigIntegerField(help_text='The price of the transfer, in satang.')),
                ('fee_vat', models.BigIntegerField(help_text='The VAT on the price, in satang.')),
                ('paid_at', models.DateTimeField(help_text='When it arrives.')),
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
                ('amount', models.BigIntegerField(help_text='Satang.')),
                ('fee', models.BigIntegerField(help_text='Satang.')),
                ('fee_vat', models.BigIntegerField(help_text='Satang.')),
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
