"""The first hour with a GPU: `make gpu` runs the tests of handlers on it, measures, and writes docs/benchmarks-gpu.md.

make gpu, or python -m tests.lab.gpu [--device cuda:0] [--sources] [--only tests|benchmark] [--quick]

device.py       which device, and one sentence where there is none
tests.py        the tests that can run on it, in a pytest of their own
loop.py         the loop without a server: reads the next batch while the model runs this one; a process of its own
served.py       the same network behind a real daemon, its load, and how busy the GPU is meanwhile
rounds.py       the measurements in turns
page.py         the page
parts.py        copies, decoding, and graphs, each for itself; ways.py: a network served in several ways
first.sh, second.sh   all of it for a machine without a package index, in two commands; unpacked.sh is what they share
"""
