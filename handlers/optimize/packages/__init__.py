"""Compiled models as libraries in files, mapped after a restart in place of compiling again: AOTInductor.

    Recorded ──export──▶ three graphs ──AOTInductor──▶ full.so, one.so, rest.so ──▶ Packages

recording.py  the model's input and output for a batch, taken from the handler
making.py     exports and compiles the graphs; needs torch.compile and a C++ compiler
package.py    the libraries, run in place of the model; needs neither
keeping.py    the folders of the libraries, by all that they were made of

A model that cannot be exported, or whose work leaves traces in its object, is compiled by torch.compile (inductor.py).
"""
