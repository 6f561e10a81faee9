"""The worker as a process: its connection, threads and memory, and how batches follow each other."""
