from odoo.addons.payment import reset_payment_provider, setup_provider

from . import controllers, models


def post_init_hook(env):
    setup_provider(env, "thai_qr")
    cron = env.ref("payment_thai_qr.cron_events")
    if "numbercall" in cron._fields:  # Odoo 17 runs an action once unless this is said
        cron.numbercall = -1


def uninstall_hook(env):
    reset_payment_provider(env, "thai_qr")
