"""A library of the shelf: what was asked for each version, for extensions whose commands register versions again."""
