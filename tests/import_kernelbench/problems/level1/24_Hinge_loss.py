import torch
import torch.nn as nn


class Model(nn.Module):
    """One number of two arrays. Of a kind that coder_offline reads."""

    def forward(self, predicted, wanted):
        return torch.mean(torch.relu(1 - predicted * wanted))


def get_inputs():
    return [torch.randn(4096, 1024), torch.randn(4096, 1024)]


def get_init_inputs():
    return []
