"""Null cards: torch, and the whole program, believe in NVIDIA GPUs where there is none.

`library.py` builds null_cuda.c, which takes the place of the CUDA runtime; `cards.py` starts processes on such cards,
and reads what they did there. Results of a kernel are whatever lay in the memory: claims are about calls.
"""
