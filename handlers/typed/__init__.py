"""Typed handlers: functions and classes whose type hints declare their inputs, as in `def predict(text: str) -> str`.

    detection    which function of a file is a typed one
    signature    its parameters: what each takes, one value or a list for the batch
    annotations  from a type to a kind of input
    body         from a request to one part for each parameter
    decoders     from a part to a value (images.py, arrays.py)
    answers      from a returned value to the body of an answer
    entry        the entry point: decode the rows, call the function, encode its answers
    pieces       functions that are generators
    waiting      functions that are coroutines

Imported only for handlers that have type hints.
"""
