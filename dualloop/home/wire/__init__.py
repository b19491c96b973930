"""How the devices of the simulated home speak over MQTT: a pure file for each dialect, and their connections."""
