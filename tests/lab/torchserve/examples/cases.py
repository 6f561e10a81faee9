"""The examples that need more than a checkout: recipes for their files, and those that are not tried, with reasons."""

import re
from typing import NamedTuple

from tests.lab.torchserve.verdict import Outcome, Row


class Prepared(NamedTuple):
    """An example whose files are made first: a pattern of its name, a recipe, and a library that may be a stand-in."""

    pattern: str
    recipe: str
    library: str = ""


PREPARED: tuple[Prepared, ...] = (
    Prepared(r"examples/Huggingface_Transformers/README", "hugging_face"),
    Prepared(r"Huggingface_accelerate/Readme\S* bloom$", "bloom"),
    Prepared(r"speech2text_wav2vec2/", "wav2vec2", "torchaudio"),
    Prepared(r"xgboost_classfication/", "iris"),
    Prepared(r"torch_export_aot_compile/", "ahead_of_time"),
    Prepared(r"yolo/yolov8/", "yolo"),
    Prepared(r"text_classification_with_scriptable_tokenizer/", "scripted_tokenizer", "torchtext"),
    Prepared(r"text_classification/", "vocabulary"),
    Prepared(r"text_to_speech_synthesizer/SpeechT5/", "speech"),
    Prepared(r"nmt_transformer/", "translation", "fairseq"),
    Prepared(r"dcgan_fashiongen/", "dcgan", "pytorch_GAN_zoo"),
    Prepared(r"examples/diffusers/", "zipped", "diffusers"),
    Prepared(r"deepspeed_mii/", "zipped", "mii"),
    Prepared(r"segment_anything_fast/", "segment_anything", "segment_anything_fast"),
    Prepared(r"chat_app/package_llama", "", "llama_cpp"),
)


class LeftOut(NamedTuple):
    """Examples that are not tried: a pattern of their names, or of a name and a file that it lacks, and why."""

    pattern: str
    why: str
    file: str = ""


# TorchServe's archiver refuses these commands, too.
STALE: tuple[LeftOut, ...] = (
    LeftOut(r"FasterTransformer_|examples/Huggingface_Transformers/|intel_extension_", "", "setup_config.json"),
    LeftOut(r"cloud_storage_stream_inference/", "", "Transformer_handler_generalized.py"),
    LeftOut(r"tp_llama/", "", "llama-handler.py"),
    LeftOut(r"ipex_llm_int8/", "", "llama2-7b-int8-woq-config.yaml"),
    LeftOut(r"RAG_based_LLM_serving/", "", "llama-config.yaml"),
)
LEFT_OUT: tuple[LeftOut, ...] = (
    LeftOut(
        r"MMF-activity-recognition/", "its library, mmf, is for torch below 1.10; weights and labels are downloaded"
    ),
    LeftOut(r"llama3-70b-instruct$", "70 billion weights in 4 bits: bitsandbytes, and GPUs that hold them"),
    LeftOut(r"diffusion_fast/", "it packs code of another repository, which runs on a GPU"),
    LeftOut(r"gpt_fast", "it packs code and converted weights of another repository, gpt-fast, which runs on a GPU"),
    LeftOut(r"inferentia2/", "a device of another kind is needed, AWS Inferentia 2"),
    LeftOut(r"torch_compile_hpu/", "a device of another kind is needed, Intel Gaudi"),
    LeftOut(r"openvino/stable_diffusion/", "openvino's backend of torch.compile, and seven gigabytes of weights"),
    LeftOut(r"nvidia_dali/\S* mnist$", "DALI's pipeline is made, and runs, on a GPU"),
    LeftOut(r"WaveGlow/", "its handler refuses machines without a GPU"),
    LeftOut(r"torchcompile/T5/", "TensorRT's backend of torch.compile, which needs a GPU"),
    LeftOut(r"Deploy.md\S* rag$", "it reads pages of the web when it is loaded"),
)


def prepared(name: str) -> Prepared | None:
    """Return how a case is prepared; None if nothing but weights is made for it."""
    return next((each for each in PREPARED if re.search(each.pattern, name)), None)


def left_out(name: str, missing: tuple[str, ...]) -> Row | None:
    """Return the row of a case that is not tried; None for one that is."""
    for each in STALE:
        gone = [file for file in missing if file.endswith(each.file)]
        if gone and re.search(each.pattern, name):
            return Row(name, Outcome.NEITHER, f"the repository has no `{gone[0]}`, and no step of the page makes it")
    why = next((each.why for each in LEFT_OUT if re.search(each.pattern, name)), "")
    return Row(name, Outcome.UNJUDGED, why) if why else None
