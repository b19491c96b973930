"""Devices behind an MQTT broker, in the dialects that real homes speak."""
