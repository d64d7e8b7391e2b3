"""Frontends under their public names: `palladium`, `pallas`."""
