import torch
import torch.nn as nn


class Model(nn.Module):
    """A strided convolution, batch normalisation in training mode, a window's largest, the last over the edge."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)

    def forward(self, x):
        return self.pool(torch.relu(self.norm(self.conv(x))))


batch_size, channels, filters = 64, 16, 32
height = width = 128


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
