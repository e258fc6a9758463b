import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        import os
        os._exit(7)


N = 1024


def get_inputs():
    return [torch.rand(N, N)]


def get_init_inputs():
    return []
