"""The cost of continuous batching: token streams of a served engine, beside the same engine in a loop without a server.

python -m tests.lab streams, or python -m tests.lab.benchmarks.streams [--rounds 9] [--sources] [--eager]

engine.py    the engine: a handler whose call takes 1 ms and makes a token for each active request
bare.py      the loop without a server: calls the handler, and asks its stopping criteria
client.py    32 connections in one thread, which cost as little as they can: clients share the two cores
others.py    31 streams in a process of their own, which another one joins
cpu.py       which process used the cores, and which waited for one
rounds.py    one measurement of either, and the table of several
"""
