import torch
import torch.nn as nn


class Model(nn.Module):
    """Element by element in two steps: of a kind that coder_offline reads."""

    def forward(self, x):
        return torch.sigmoid(x * 2.0)


def get_inputs():
    return [torch.randn(2048, 4096)]


def get_init_inputs():
    return []
