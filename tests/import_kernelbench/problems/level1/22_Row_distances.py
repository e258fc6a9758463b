import torch
import torch.nn as nn


class Model(nn.Module):
    """A number a row, from two arrays, with an operator behind it. Of a kind that coder_offline reads."""

    def forward(self, first, second):
        return torch.sqrt(torch.mean((first - second) ** 2, dim=-1))


def get_inputs():
    return [torch.randn(1024, 2048), torch.randn(1024, 2048)]


def get_init_inputs():
    return []
