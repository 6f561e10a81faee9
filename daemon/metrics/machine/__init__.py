"""The machine's processor, memory, disk and GPUs."""
