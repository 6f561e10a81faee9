import torch
import torch.nn as nn


class LinearNet(nn.Module):
    def __init__(self):
        super(LinearNet, self).__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)


def weights():
    """Class 0 for the larger first number, class 1 for the larger second, class 2 for two negative ones."""
    return {"fc.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), "fc.bias": torch.zeros(3)}
