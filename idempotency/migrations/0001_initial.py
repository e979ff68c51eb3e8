import core.database.columns
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('merchants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('pk', models.CompositePrimaryKey('key', 'merchant_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('key', models.CharField(db_collation='C', max_length=255)),
                ('fingerprint', models.BinaryField()),
                ('status', models.SmallIntegerField()),
                ('body_sealed', models.BinaryField()),
                ('subject_id', core.database.columns.PublicId(blank=True, db_collation='C', db_default='', default='', max_length=31)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'default_permissions': (),
            },
        ),
    ]
