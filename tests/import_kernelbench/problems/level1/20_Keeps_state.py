import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        self.seen = getattr(self, "seen", 0) + 1
        return x * self.seen


N = 1024


def get_inputs():
    return [torch.rand(N, N)]


def get_init_inputs():
    return []
