"""This machine, as the kernel and NVML tell. Nothing here knows a model or a worker.

processes    a process, its parent and children, its memory and processor time, from /proc
cgroups      the directories of this process's cgroups; the limits of processor time in them
cards        the GPUs: how many there are, which the daemon uses, and their names for CUDA
gpu          how busy these are, and their memory; a question beside the event loop
"""
