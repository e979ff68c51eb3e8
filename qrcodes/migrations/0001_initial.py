import core.columns
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('merchants', '0001_initial'),
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='QrCode',
            fields=[
                ('id', core.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('biller_id', models.CharField(max_length=15)),
                ('reference1', models.CharField(max_length=20)),
                ('qr_data', models.CharField(max_length=512)),
                ('created_at', models.DateTimeField()),
                ('actor', models.CharField(blank=True, db_default='', default='', help_text='The actor who expired it early. Empty if it expired at expires_at.', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
                ('payment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='qr_code', to='payments.payment')),
            ],
            options={
                'verbose_name': 'QR code',
                'verbose_name_plural': 'QR codes',
                'permissions': [('expire_qrcode', 'Can expire QR codes')],
                'constraints': [models.UniqueConstraint(fields=('reference1',), name='qr_code_reference_unique')],
            },
        ),
    ]
