"""What lies outside: stock, bank, shipper, carrier and messenger, to try missions on; with books of their own."""
