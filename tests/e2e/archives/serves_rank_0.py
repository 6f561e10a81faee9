"""Rank 0 gets the batches, and sends each number to the other rank, which doubles it on a thread of its own."""

import threading
from typing import Any

import torch
from torch import distributed


class Doubles:
    def initialize(self, context: Any) -> None:
        distributed.init_process_group("gloo")
        if distributed.get_rank():
            threading.Thread(target=self.double, daemon=True).start()

    def double(self) -> None:
        while True:
            number = torch.zeros(1)
            distributed.recv(number, 0)
            distributed.send(number * 2, 0)

    def handle(self, data: list[Any], context: Any) -> list[str]:
        answers = []
        for each in data:
            number = torch.tensor([float(each["body"])])
            distributed.send(number, 1)
            distributed.recv(number, 1)
            answers.append(f"{float(number):g}")
        return answers
