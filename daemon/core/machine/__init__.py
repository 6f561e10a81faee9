"""This machine, as the kernel and `nvidia-smi` tell. Nothing here knows a model or a worker.

processes    a process, its parent and children, its memory and processor time, from /proc
memory       the memory of processes and their descendants, on the host and on each GPU
memory_left  the memory that is left for further processes, on the machine and in the cgroups above this process
cgroups      the directories of this process's cgroups; the limits of processor time in them
host         how busy processor, memory and disk are
gpu          how busy the GPUs are; a question beside the event loop
gpu_memory   the free memory of GPUs, and what processes take there
"""
