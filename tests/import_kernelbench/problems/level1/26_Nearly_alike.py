import torch
import torch.nn as nn


class Model(nn.Module):
    """An output whose elements differ by less than half precision's tolerance, and by more than single precision's."""

    def forward(self, x):
        return 1.0 + 0.004 * torch.sin(x)


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
