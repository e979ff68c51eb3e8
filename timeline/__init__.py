"""The timeline of a payment: all that happened to it, put together from the rows that were kept anyway."""
