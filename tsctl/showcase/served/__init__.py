"""The model of `tsctl demo`: files of an archive, which no other module imports.

handler.py      runs in a worker
weights.pt      float16; docs/examples/digits/pixels.py trains them
digit.bin       of the digits that the network was not trained on, the one it is surest of
photographs.py  runs in a worker: the photograph at the end, where its packages are installed
about.json      the accuracy, as measured by that script
"""
