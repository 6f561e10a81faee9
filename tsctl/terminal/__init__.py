"""The conduct of each verb at a terminal: help, streams, Ctrl-C, suggestions, output beside a live line."""
