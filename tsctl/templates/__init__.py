"""Projects that `tsctl new` writes: each folder is copied as it stands. No other module imports them.

    function      one function of rows of numbers
    text          a class that loads something once, and a function of texts
    image         one function of images
    torchscript   a class that loads a TorchScript file

A sample input, and the model of `torchscript`, are made by `make_sample.py` or `make_model.py` of the new project, run
in a process of its own: this one imports neither torch nor Pillow.
"""
