import torch


class Scorer:
    def initialize(self, context):
        self.model = torch.nn.Linear(4, 1).requires_grad_(False)
        self.model.load_state_dict(torch.load(context.system_properties["model_dir"] + "/weights.pt"))

    def handle(self, data, context):  # one dict for each request of the batch
        rows = torch.tensor([row["body"] for row in data])
        return self.model(rows).tolist()  # one answer for each request
