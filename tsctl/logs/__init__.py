"""The log files of a daemon: read, merged by time, and followed."""
