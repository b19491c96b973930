"""What lies outside, to try missions on: stock, bank, shipper, carrier, messenger, gadgets, a model, with own books."""
