"""Computes on its GPU, and answers with its process and the GPU. A body is the MiB that its row needs there."""

import os

import torch


class OnCard:
    def initialize(self, context):
        self.gpu = context.system_properties["gpu_id"]
        self.device = torch.device("cpu" if self.gpu is None else f"cuda:{self.gpu}")
        self.weights = torch.ones(64, 64).to(self.device)

    def handle(self, data, context):
        needed = sum(int(bytes(row["body"])) for row in data)
        room = torch.empty(needed << 20, dtype=torch.uint8, device=self.device)
        (torch.ones(len(data), 64).to(self.device) @ self.weights).cpu()
        del room
        return [f"{os.getpid()} {self.gpu}" for _ in data]
