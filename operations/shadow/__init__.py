"""Compares the payments of a merchant with the files of another gateway. See docs/decisions/109-shadow.md."""
