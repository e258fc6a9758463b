import torch
import torch.nn as nn


class Model(nn.Module):
    """Of rows so long that all of the output is nearly zero. Of a kind that coder_offline reads."""

    def forward(self, x):
        return torch.softmax(x * 0.5, dim=1)


def get_inputs():
    return [torch.rand(512, 65536)]


def get_init_inputs():
    return []
