"""One file for all models: `tsctl apply`, `export` and `rollback`.

state.py        the registered versions, from the daemon; the same classes describe a file's
node.py         a part of a file, with its line
file.py         a file's text → the state that it asks for; errors name the line and the key
route.py        a model's route in a file
sources.py      a source → its name for the daemon, and the version in the archive
plan.py         two states → the steps from one to the other, in an order that drops no serving version
difference.py   steps → lines for people
run.py          executes steps, and undoes them if one fails
export.py       a state → a file's text
"""
