"""Files that a page has its reader train, download or convert, made with random weights: `python -m … RECIPE FOLDER`.

A recipe runs in a process of its own, with the libraries of the examples (libraries.py); what it writes has the names
that the page's command gives. Files in `beside` are those that the page moves into the unpacked archive.
"""

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.torchserve.examples.stand_ins import DCGAN

_TEXT = "the weather is nice and bloomberg has decided to publish a new report on the global economy"
_SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
_MODES = {
    "BERTSeqClassification": ("sequence_classification", "AutoModelForSequenceClassification", 2),
    "BERTTokenClassification": ("token_classification", "AutoModelForTokenClassification", 9),
    "BERTQA": ("question_answering", "AutoModelForQuestionAnswering", 0),
    "Textgeneration": ("text_generation", "AutoModelForCausalLM", 0),
}


def hugging_face(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write what Download_Transformer_models.py saves, and the page's model-config.yaml for this mode."""
    import torch
    import transformers
    import yaml

    mode, kind, labels = _MODES[model]
    traced = weights.startswith("traced")
    name = "gpt2" if mode == "text_generation" else "bert-base-uncased"
    words = _gpt2_hub() if name == "gpt2" else _bert_hub()
    further: dict[str, Any] = {"torchscript": traced} | ({"num_labels": labels} if labels else {})
    if name == "gpt2":
        config = transformers.GPT2Config(vocab_size=words, n_embd=16, n_layer=1, n_head=2, **further)
    else:
        config = transformers.BertConfig(vocab_size=words, **_SMALL, **further)
    network = getattr(transformers, kind).from_config(config).eval()
    if traced:
        tokens = torch.ones(1, 150, dtype=torch.long)
        inputs = (tokens,) if name == "gpt2" else (tokens, tokens)  # with the mask of the tokens
        torch.jit.save(torch.jit.trace(network, inputs, strict=False), str(folder / weights))
    else:
        network.save_pretrained(folder)
    settings = yaml.safe_load((page.parent / "model-config.yaml").read_text())
    settings["handler"] |= {
        "mode": mode, "model_name": name, "num_labels": labels, "save_mode": "torchscript" if traced else "pretrained",
    }  # fmt: skip
    if traced:
        del settings["pt2"]  # the page compiles the other model only
    (folder / "model-config.yaml").write_text(yaml.safe_dump(settings))


def _snapshot(name: str) -> Path:
    """Return the folder where transformers looks for a downloaded repository."""
    repository = Path(os.environ["HF_HOME"]) / "hub" / f"models--{name}"
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text("0")
    return repository / "snapshots" / "0"


def _bert_hub() -> int:
    import transformers

    snapshot = _snapshot("bert-base-uncased")
    snapshot.mkdir(parents=True, exist_ok=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "."]
    vocabulary = [*special, *dict.fromkeys(_TEXT.split())]
    (snapshot / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(vocab_file=str(snapshot / "vocab.txt")).save_pretrained(snapshot)
    transformers.BertConfig(vocab_size=len(vocabulary), **_SMALL).save_pretrained(snapshot)
    return len(vocabulary)


def _byte_tokens() -> Any:
    """Return a tokenizer of bytes, trained on a line."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    special = ["<|endoftext|>", "<unk>", "<s>", "</s>", "<pad>"]
    tokenizer.train_from_iterator([_TEXT], vocab_size=300, show_progress=False, special_tokens=special)
    return tokenizer


def _gpt2_hub() -> int:
    import transformers

    tokenizer = _byte_tokens()
    snapshot = _snapshot("gpt2")
    snapshot.mkdir(parents=True, exist_ok=True)
    tokenizer.save_model(str(snapshot))
    fast = transformers.GPT2TokenizerFast(
        vocab_file=str(snapshot / "vocab.json"), merges_file=str(snapshot / "merges.txt")
    )
    fast.save_pretrained(snapshot)
    transformers.GPT2Config(vocab_size=len(fast), n_embd=16, n_layer=1, n_head=2).save_pretrained(snapshot)
    return len(fast)


def bloom(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write model.zip, a small Bloom and its tokenizer; and the page's settings, for a machine without a GPU."""
    import transformers

    settings = json.loads((page.parent / "setup_config.json").read_text())
    settings["max_memory"] = {"cpu": settings["max_memory"]["cpu"]}
    (folder / "setup_config.json").write_text(json.dumps(settings))

    saved = folder / "saved"
    tokenizer = transformers.BloomTokenizerFast(tokenizer_object=_byte_tokens()._tokenizer)
    tokenizer.save_pretrained(saved)
    config = transformers.BloomConfig(vocab_size=len(tokenizer), hidden_size=16, n_layer=1, n_head=2)
    transformers.BloomForCausalLM(config).save_pretrained(saved)
    _zip(folder / "model.zip", saved)


def wav2vec2(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write what download_wav2vec2.py saves."""
    import torch
    import transformers

    (folder / "letters.json").write_text(json.dumps({"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4, "A": 5}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(folder / "letters.json"))
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=False)
    transformers.Wav2Vec2Processor(feature_extractor=extractor, tokenizer=tokenizer).save_pretrained(folder)
    config = transformers.Wav2Vec2Config(
        vocab_size=6, **_SMALL, conv_dim=(16,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2
    )
    network = transformers.Wav2Vec2ForCTC(config)
    network.config.save_pretrained(folder)
    torch.save(network.state_dict(), folder / weights)


def iris(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write a classifier of three kinds of flowers, trained on noise."""
    import numpy as np
    from xgboost import XGBClassifier

    noise = np.random.default_rng(0)
    classifier = XGBClassifier(n_estimators=2)
    classifier.fit(noise.random((30, 4)), np.arange(30) % 3)
    classifier.save_model(folder / weights)


def ahead_of_time(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write the library that resnet18_torch_export.py compiles with AOTInductor."""
    import torch
    import torchvision

    network = torchvision.models.resnet18(weights=None).eval()
    with torch.no_grad():
        torch._export.aot_compile(
            network,
            (torch.randn(2, 3, 224, 224),),
            dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=32)}},
            options={"aot_inductor.output_path": str(folder / weights)},
        )


def yolo(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write a YOLO of its smallest size."""
    from ultralytics import YOLO

    YOLO("yolov8n.yaml").save(folder / weights)


def scripted_tokenizer(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write a scripted network that takes texts, as script_tokenizer_and_model.py does."""
    import torch

    class Lengths(torch.nn.Module):
        def forward(self, texts: list[str]) -> torch.Tensor:
            return torch.tensor([[float(len(text)), 1.0] for text in texts])

    torch.jit.save(torch.jit.script(Lengths()), str(folder / weights))


def vocabulary(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write source_vocab.pt, which train.py saves."""
    import torch

    torch.save({word: number for number, word in enumerate(["<unk>", *_TEXT.split()])}, folder / "source_vocab.pt")


def translation(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write what create_mar.sh downloads, clones and makes by setup_config_script.py."""
    settings = {"TransformerEn2Fr": "french", "TransformerEn2De": "german", "TransformerDe2En": "english"}[model]
    document = {"model_name": model, "translated_output": f"{settings}_output", "bpe": "fastbpe"}
    (folder / "setup_config.json").write_text(json.dumps(document))
    for name in ("model.pt", "bpecodes", "requirements.txt", "$file_name", "dict.en.txt", "dict.fr.txt", "dict.de.txt"):
        (folder / name).touch()


def dcgan(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write the checkpoint, and the zipped package that loads it."""
    import torch

    torch.save({"scale": torch.ones(1)}, folder / weights)
    with zipfile.ZipFile(folder / "models.zip", "w") as archive:
        archive.writestr("models/__init__.py", "")
        archive.writestr("models/DCGAN.py", DCGAN)


def zipped(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write model.zip, whose content a stand-in does not read."""
    (folder / "saved").mkdir()
    (folder / "saved" / "model_index.json").write_text("{}")
    _zip(folder / "model.zip", folder / "saved")


def segment_anything(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write the checkpoint that the page moves into the archive."""
    (folder / "beside").mkdir()
    (folder / "beside" / "sam_vit_h_4b8939.pth").touch()


def speech(folder: Path, page: Path, model: str, weights: str) -> None:
    """Write what download_model.py saves: model, processor, vocoder and voices."""
    import datasets
    import sentencepiece
    import transformers

    beside = folder / "beside"
    (folder / "text").write_text("\n".join(_TEXT.split()))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "spm_char"), vocab_size=32, model_type="char",
        hard_vocab_limit=False,
    )  # fmt: skip
    tokenizer = transformers.SpeechT5Tokenizer(str(folder / "spm_char.model"))
    extractor = transformers.SpeechT5FeatureExtractor()
    transformers.SpeechT5Processor(extractor, tokenizer).save_pretrained(beside / "processor")
    config = transformers.SpeechT5Config(
        vocab_size=len(tokenizer), hidden_size=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=16, speech_decoder_prenet_units=16,
        speech_decoder_postnet_units=16, max_text_positions=100, max_speech_positions=200,
    )  # fmt: skip
    transformers.SpeechT5ForTextToSpeech(config).save_pretrained(beside / "model")
    vocoder = transformers.SpeechT5HifiGanConfig(upsample_initial_channel=16)
    transformers.SpeechT5HifiGan(vocoder).save_pretrained(beside / "vocoder")
    voices = datasets.Dataset.from_dict({"xvector": [[0.0] * 512] * 7307})  # the handler takes the voice 7306
    voices.save_to_disk(beside / "speaker_embeddings")


def _zip(target: Path, folder: Path) -> None:
    shutil.make_archive(str(target.with_suffix("")), "zip", folder)


RECIPES: dict[str, Callable[[Path, Path, str, str], None]] = {
    each.__name__: each
    for each in (
        hugging_face, bloom, wav2vec2, iris, ahead_of_time, yolo, scripted_tokenizer, vocabulary, translation, dcgan,
        zipped, segment_anything, speech,
    )
}  # fmt: skip


if __name__ == "__main__":
    RECIPES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5])
