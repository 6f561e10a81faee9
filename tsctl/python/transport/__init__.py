"""How a call travels: addresses, connections that block or wait, and the reader of answers."""
