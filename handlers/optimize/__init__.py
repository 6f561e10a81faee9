"""Run a loaded model faster, and check that its output stays the same.

    handler with its model ──▶ asked.py    which optimisations it gets, and which were asked for by name
                           ──▶ samples.py  inputs to check them on
                           ──▶ apply.py    one after the other: apply, run, compare (drift.py), keep or take back

    fast_images    images.py    decode to bytes, resize and normalise those
    fold           folding.py   each convolution takes in the batch normalisation that follows it
    channels_last  apply.py     weights in the memory order that suits convolutions best
    bf16           bfloat16.py  weights and activations in 16 bits
    compile        inductor.py  torch.compile, with every batch size compiled before the worker is ready

Explanations run the model as loaded: plain.py.
"""
