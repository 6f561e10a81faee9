"""Rules of a registration: the settings that it keeps, the names that it may take."""
