"""The command line `thaiqr`. It needs the extra: `pip install 'thaiqr[cli]'`."""
