"""When, and with whom, a job travels."""
