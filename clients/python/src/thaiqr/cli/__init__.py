"""The command line `thaiqr`. It needs the extra: `pip install 'thai-qr-payments-client[cli]'`."""
