"""Whether the tests would notice a changed line: eleven core modules, each with mutants drawn by a seed.

changes.py      what a mutant is: one small change of a module's syntax tree
judging.py      mutants against the tests that reach them, each in a fork of a process that has collected all tests
modules.py      the modules, the tests that reach each, and the mutants that change nothing
__main__.py     the table

mutmut and cosmic-ray start a new interpreter for each mutant, over 2 s here before the first test runs, and mutate the
files of the tree; a fork takes milliseconds, and a mutant exists only in it.
"""
