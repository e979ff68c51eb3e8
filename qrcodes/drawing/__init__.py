"""Draw the card of a code: a frame with the code, the shop, the amount, the reference and the expiry.

`layout` decides what stands where; `png` and `pdf` write it. Import this package only where a card is
drawn, because its library takes 70 ms to load.
"""
