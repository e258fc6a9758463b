import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.hub.load_state_dict_from_url("http://127.0.0.1:9/weights.pt")


N = 1024


def get_inputs():
    return [torch.rand(N, N)]


def get_init_inputs():
    return []
