"""The daemon as one process: its extensions (extensions.py), its parts (assembly.py), its life (daemon.py)."""
