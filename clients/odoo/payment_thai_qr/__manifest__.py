{
    "name": "Thai QR Payments",
    "version": "1.0.0",
    "category": "Accounting/Payment Providers",
    "summary": "Customers pay by Thai QR code. A payment is posted when the bank has reported the money.",
    "author": "Thai QR Payments",
    "depends": ["account_payment"],
    "data": [
        "data/payment_provider_data.xml",
        "views/payment_views.xml",
    ],
    "post_init_hook": "post_init_hook",
    "uninstall_hook": "uninstall_hook",
    "license": "Other proprietary",
}
