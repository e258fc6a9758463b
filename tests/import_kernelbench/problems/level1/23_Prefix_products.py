import torch
import torch.nn as nn


class Model(nn.Module):
    """Of a kind that coder_offline reads."""

    def forward(self, x):
        return torch.cumprod(x, dim=1)


def get_inputs():
    return [torch.rand(2048, 1024) + 0.5]


def get_init_inputs():
    return []
