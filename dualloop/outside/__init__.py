"""What lies outside, to try missions on: stock, bank, shipper, carrier, messenger and gadgets, with their own books."""
