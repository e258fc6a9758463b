import torch
import torch.nn as nn


class Model(nn.Module):
    """A chain of more layers than a launch function should have parameters."""

    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x) * 3.0) + x
        return x


batch_size = 128
width = 256


def get_inputs():
    return [torch.randn(batch_size, width)]


def get_init_inputs():
    return [width, 5 + 5 + 7]
