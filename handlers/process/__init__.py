"""The worker as a process: its connection and threads, and how batches follow each other."""
