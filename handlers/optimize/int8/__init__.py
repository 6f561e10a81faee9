"""Convolutions and linear layers on 8-bit integers: a quarter of the memory traffic, and instructions made for them.

    model ──▶ model.py        the parts that torch.fx can trace: the model, else the largest of its modules
          ──▶ layout.py       the layers in a part's graph, each with the operations done in the same pass
          ──▶ calibration.py  the values between layers, observed on the archive's samples, and written in uint8
          ──▶ rewriting.py    a graph of layers on integers (layers.py)

Post-training, static quantisation. Of the ways to have it in torch:

* `torch.ao.quantization` (FX graph mode) is deprecated and to be deleted, with the dtypes that it stands on; torch asks
  for plain int8 and uint8 tensors, with scales kept by the caller;
* torchao (pt2e) replaces that: another dependency bound to single versions of torch, a C++ compiler on the
  serving machine, and a minute of compiling for a ResNet-152;
* this room does as torch asks: it calls oneDNN's operators on plain tensors (`torch.ops.onednn`), the same ones that
  torch.compile emits for a model that torchao has quantised. They are no documented interface; without them `int8` is
  refused, and the outputs are compared with the plain model's at the load like those of any optimisation.
"""
