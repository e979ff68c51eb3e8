"""Run by `odoo-bin shell`: a shop in Thailand, a customer, a product, and the provider without its key."""

import json

baht = env.ref("base.THB")
baht.active = True
company = env.company
env["product.pricelist"].search([]).currency_id = baht
env["account.chart.template"].try_loading("generic_coa", company)  # it sets dollars
company.write({"name": "Somtam House", "currency_id": baht.id, "country_id": env.ref("base.th").id})
thai = env["res.lang"].with_context(active_test=False).search([("code", "=", "th_TH")])
env["base.language.install"].create({"lang_ids": [(6, 0, thai.ids)]}).lang_install()
parameters = env["ir.config_parameter"]
parameters.set_param("web.base.url", URL)
parameters.set_param("web.base.url.freeze", "True")
# There is no program here that makes PDFs.
env["mail.template"].search([("report_template_ids", "!=", False)]).report_template_ids = False
customer = env["res.partner"].create({"name": "Somchai", "email": "somchai@shop.example", "lang": "en_US"})
product = env["product.product"].create(
    {"name": "Som tam", "list_price": 150.25, "type": "service", "taxes_id": False, "invoice_policy": "order"}
)
provider = env.ref("payment_thai_qr.payment_provider_thai_qr")
env.cr.commit()
made = {
    "customer": customer.id,
    "product": product.id,
    "provider": provider.id,
    "method": env.ref("payment_thai_qr.payment_method_thai_qr").id,
    "cron": env.ref("payment_thai_qr.cron_events").id,
    "post_process": env.ref("payment.cron_post_process_payment_tx").id,
}
print("made " + json.dumps(made))
