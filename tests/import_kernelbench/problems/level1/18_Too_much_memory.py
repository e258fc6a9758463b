import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.zeros(1 << 40).sum() + x


N = 1024


def get_inputs():
    return [torch.rand(N, N)]


def get_init_inputs():
    return []
