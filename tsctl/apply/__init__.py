"""One file for all models: `tsctl apply`, `export` and `rollback`.

state    the registered versions, from the daemon; the same classes describe a file's
node     a part of a file, with its line
file     a file's text → the state that it asks for; errors name the line and the key
route    a model's route in a file
plan     two states → the steps from one to the other, in an order that drops no serving version
steps    each kind of step: its requests, and its lines for people
run      executes steps, and undoes them if one fails
export   a state → a file's text
"""
