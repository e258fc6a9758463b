import torch
import torch.nn as nn


class Model(nn.Module):
    """A transposed convolution in groups: the result's height and width are products."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1, groups=2)

    def forward(self, x):
        return torch.tanh(self.conv(x))


batch_size, channels, filters = 32, 16, 8
height, width = 64, 48


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
