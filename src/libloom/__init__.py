"""Devices and submission: runs finished objects on the simulator or a device."""
