"""The words of usual notifications. With them stored notifications take half of their size.

Stored ones cannot be read with other words: never change them.
"""

USUAL_NOTIFICATION = (
    b'{"payeeProxyId":"0","payeeProxyType":"BILLERID","payeeAccountNumber":"","payeeName":"","payerProxyId":'
    b'"","payerProxyType":"","payerAccountNumber":"","payerAccountName":"","payerName":"","sendingBankCode":'
    b'"014","receivingBankCode":"014","amount":"1500.00","transactionId":"2026","transactionDateandTime":"20'
    b'26-11-21T10:00:00.000+07:00","billPaymentRef1":"","billPaymentRef2":"","billPaymentRef3":"","currencyC'
    b'ode":"764","channelCode":"PMH","transactionType":"Domestic Transfers"}{"billerId":"0","transDate":"202'
    b'61121","transTime":"10:00:00","termType":"80","amount":"1500.00","reference1":"","reference2":"","refer'
    b'ence3":"","fromBank":"004","fromBranch":"0000","fromName":"","bankRef":"2026","approvalCode":"","txnTyp'
    b'e":"C","retryFlag":"N"}\xe0\xb8\xe0\xb9\\u0e2a\\u0e21\\u0e0a\\u0e32\\u0e22 \\u0e43\\u0e08\\u0e14\\u0e35'
    b'{"transaction_id":"sbp_","type":"credit","biller_id":"","reference1":"","reference2":"","reference3":""'
    b',"amount":"1500.00","currency":"THB","paid_at":"2026-11-21T10:00:00.000+07:00","payer_name":"","payer_b'
    b'ank_code":"014","payer_account":"","slip_reference":"2026"}'
)
