"""Real things behind one small protocol: observe and act."""
