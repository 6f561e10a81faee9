"""torchcrepe: the pitch of each hundredth of a second, in steps of 20 cents. A batch's frames share one pass."""

import torch
import torchcrepe

from tsctl import Audio


def predict(recordings: list[Audio]) -> list[list[int]]:
    frames = [next(torchcrepe.preprocess(torch.from_numpy(each.samples)[None], each.rate)) for each in recordings]
    with torch.inference_mode():
        found = torchcrepe.infer(torch.cat(frames)).split([len(each) for each in frames])
        # The steps, and not the frequencies, which `decode` moves by chance.
        return [torchcrepe.decode.viterbi(each.T[None])[0].squeeze(0).tolist() for each in found]
