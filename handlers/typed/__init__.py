"""Typed handlers: functions and classes whose type hints declare their inputs, as in `def predict(text: str) -> str`.

    signature    which function of a file is a typed one; its parameters: what each takes, one value or a list
    annotations  from a type to a kind of input
    body         from a request to one part for each parameter
    decoders     from a part to a value (images.py, arrays.py)
    answers      from a returned value to the body of an answer
    entry        the entry point: decode the rows, call the function, encode its answers
    pieces       functions that are generators
    waiting      functions that are coroutines

Imported only for handlers that have type hints.
"""
