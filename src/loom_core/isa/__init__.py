"""The command set: machine, command table, encoding, cost, description."""
