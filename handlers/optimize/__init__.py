"""Run a loaded model faster, and check that its output stays the same.

    handler with its model ──▶ selected_steps.py  the default optimisations, and those asked for by name
                           ──▶ apply.py  as was found out before (checks/outcomes.py), else as a check finds
                           ──▶ check.py  one after the other: apply, compare the drift (checks), keep or take back
                           ──▶ steps.py  what each changes

    fast_images    builtin/fast_images.py    decode to bytes, resize and normalise those
    scaled_decode  builtin/scaled_decode.py  decode a JPEG that is much larger than needed at a part of its size
    fold           folding.py   merge each batch normalisation into the convolution before it
    channels_last  steps.py     weights in the memory order that suits convolutions best
    bf16           bfloat16.py  weights and activations in 16 bits
    int8           int8/        convolutions and linear layers on 8-bit integers
    compile        inductor.py  torch.compile, with every batch size compiled before the worker is ready
    onnxruntime    onnx_runtime.py  exported, and run by ONNX Runtime
    graph          graph.py     CUDA graphs: one call starts all kernels

Explanations run the model as loaded: sdk/plain_model.py.
"""
