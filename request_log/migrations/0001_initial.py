import core.database.columns
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('operations', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='RequestRecord',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('merchant_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('created_at', models.DateTimeField(verbose_name='time')),
                ('key_id', models.CharField(blank=True, max_length=16, verbose_name='key')),
                ('method', models.CharField(max_length=8, verbose_name='method')),
                ('route', models.CharField(max_length=120, verbose_name='route')),
                ('path', models.CharField(blank=True, max_length=500, verbose_name='path')),
                ('status', models.SmallIntegerField(verbose_name='status')),
                ('error_code', models.CharField(blank=True, max_length=60, verbose_name='error code')),
                ('duration_ms', models.IntegerField(verbose_name='milliseconds')),
                ('idempotency', models.CharField(blank=True, choices=[('', 'without a key'), ('first', 'first with its key'), ('replayed', 'answered from the first')], max_length=8, verbose_name='idempotency')),
                ('request_id', models.CharField(blank=True, db_collation='C', max_length=64, verbose_name='request id')),
                ('payment_id', core.database.columns.PublicId(blank=True, db_collation='C', max_length=31, verbose_name='payment')),
                ('address', models.CharField(blank=True, max_length=64, verbose_name='address')),
                ('bodies', models.BinaryField(default=b'', verbose_name='bodies')),
            ],
            options={
                'verbose_name': 'API request',
                'verbose_name_plural': 'API requests',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['merchant_id', 'created_at'], name='requestrecord_of_merchant'), models.Index(condition=models.Q(('request_id', ''), _negated=True), fields=['request_id', 'merchant_id'], name='requestrecord_of_request'), models.Index(condition=models.Q(('payment_id', ''), _negated=True), fields=['payment_id', 'created_at'], name='requestrecord_of_payment')],
            },
        ),
        migrations.RunSQL("SELECT operations_partition_by_month('request_log_requestrecord', 'id')"),
    ]
