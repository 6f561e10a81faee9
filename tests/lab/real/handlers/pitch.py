"""torchcrepe: the pitch of each hundredth of a second, in steps of 20 cents. A batch's frames share one pass."""

import io

import soundfile
import torch
import torchcrepe


def predict(recordings: list[bytes]) -> list[list[int]]:
    frames = []
    for recording in recordings:
        sound, rate = soundfile.read(io.BytesIO(recording), dtype="float32")
        frames.append(next(torchcrepe.preprocess(torch.from_numpy(sound)[None], rate)))
    with torch.inference_mode():
        found = torchcrepe.infer(torch.cat(frames)).split([len(each) for each in frames])
        # The steps, and not the frequencies, which `decode` moves by chance.
        return [torchcrepe.decode.viterbi(each.T[None])[0].squeeze(0).tolist() for each in found]
