"""The timeline of a payment: its history, built from rows that other apps store."""
