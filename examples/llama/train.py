#!/usr/bin/env python3
"""Trains the byte-level model of this folder and writes it in the Llama layout.

    bible -f gen1:1-rev22:21 >kjv.txt          # packages bible-kjv and bible-kjv-text
    python3 train.py kjv.txt --seconds 1800    # writes model.safetensors and config.json

Needs PyTorch 1.13 or later and nothing else. It uses a GPU where there is one. The corpus is read
as bytes, one verse a line; what is left of a line is what follows its reference ("Ge1:1 ").
"""
import argparse
import json
import math
import os
import struct
import time

import torch
import torch.nn.functional as F

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 0,  # what it is trained with
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "float16",
}


def read_corpus(path):
    verses = []
    with open(path, encoding="latin-1") as lines:
        for line in lines:
            verses.append(line.rstrip("\n").split(" ", 1)[-1])
    return torch.tensor(list("\n".join(verses).encode("latin-1")), dtype=torch.long)


class Norm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + CONFIG["rms_norm_eps"])
        return (x * scale).to(x.dtype) * self.weight


def linear(rows, columns, deviation):
    weight = torch.nn.Linear(columns, rows, bias=False)
    torch.nn.init.normal_(weight.weight, std=deviation)
    return weight


def rotate(x, cosine, sine):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width, layers = CONFIG["hidden_size"], CONFIG["num_hidden_layers"]
        self.heads, self.groups = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
        self.head = width // self.heads
        self.q_proj = linear(width, width, 0.06)
        self.k_proj = linear(self.groups * self.head, width, 0.06)
        self.v_proj = linear(self.groups * self.head, width, 0.06)
        self.o_proj = linear(width, width, 0.06 / math.sqrt(2 * layers))

    def forward(self, x, cosine, sine, mask):
        batch, length, width = x.shape
        split = lambda y, count: y.view(batch, length, count, self.head).transpose(1, 2)
        q = rotate(split(self.q_proj(x), self.heads), cosine, sine)
        k = rotate(split(self.k_proj(x), self.groups), cosine, sine)
        v = split(self.v_proj(x), self.groups)
        repeat = self.heads // self.groups
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head) + mask
        mixed = torch.softmax(scores, -1) @ v
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
        self.gate_proj = linear(inner, width, 0.06)
        self.up_proj = linear(inner, width, 0.06)
        self.down_proj = linear(width, inner, 0.06 / math.sqrt(2 * CONFIG["num_hidden_layers"]))

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = Norm(CONFIG["hidden_size"])
        self.self_attn = Attention()
        self.post_attention_layernorm = Norm(CONFIG["hidden_size"])
        self.mlp = FeedForward()

    def forward(self, x, *tables):
        x = x + self.self_attn(self.input_layernorm(x), *tables)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(torch.nn.Module):
    def __init__(self, context):
        super().__init__()
        width = CONFIG["hidden_size"]
        self.embed_tokens = torch.nn.Embedding(CONFIG["vocab_size"], width)
        torch.nn.init.normal_(self.embed_tokens.weight, std=0.06)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm = Norm(width)
        half = width // CONFIG["num_attention_heads"] // 2
        rate = CONFIG["rope_theta"] ** (-torch.arange(half) / half)
        angle = torch.arange(context)[:, None] * rate[None, :]
        mask = torch.full((context, context), float("-inf")).triu(1)
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine, self.mask)
        return self.norm(x) @ self.embed_tokens.weight.t()


def save(model, path):
    """Writes every parameter as f16: eight bytes of header length, the header, the bytes."""
    header, chunks, offset = {}, [], 0
    for name, value in model.state_dict().items():
        raw = value.detach().cpu().to(torch.float16).contiguous().numpy().tobytes()
        header["model." + name] = {"dtype": "F16", "shape": list(value.shape),
                                   "data_offsets": [offset, offset + len(raw)]}
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))
    os.replace(path + ".part", path)


def load(model, path):
    """Takes the parameters from a file that save wrote."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header, raw = json.loads(file.read(length)), file.read()
    state = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(raw[first:end]), dtype=torch.float16)
        state[name[len("model."):]] = flat.float().view(entry["shape"])
    model.load_state_dict(state)


def batches(data, batch, context, device):
    while True:
        start = torch.randint(len(data) - context - 1, (batch,))
        rows = torch.stack([data[s:s + context + 1] for s in start]).to(device)
        yield rows[:, :-1], rows[:, 1:]


def loss_of(model, tokens, wanted, autocast):
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=autocast):
        logits = model(tokens)
    return F.cross_entropy(logits.float().reshape(-1, CONFIG["vocab_size"]), wanted.reshape(-1))


def train(options):
    torch.manual_seed(1611)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(options.threads)
    data = read_corpus(options.corpus)
    model = Model(options.context)
    if options.start:
        load(model, options.start)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.05)
    source = batches(data, options.batch, options.context, device)
    begun, step, mean, told = time.time(), 0, None, 0.0
    while True:
        share = min(1.0, (time.time() - begun) / options.seconds)
        if share >= 1.0:
            break
        rate = options.rate * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * (1 - share) ** 1.2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, *next(source), device == "cuda")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            value = float(loss.detach())
            mean = value if mean is None else 0.9 * mean + 0.1 * value
        if time.time() - told > 30 and mean is not None:
            told = time.time()
            tokens = step * options.batch * options.context
            print(f"{told - begun:6.0f} s  step {step:6d}  {tokens / 1e6:8.2f} M bytes  "
                  f"{mean:.3f} nats a byte", flush=True)
            save(model, options.out + "/model.safetensors")
    save(model, options.out + "/model.safetensors")
    CONFIG["max_position_embeddings"] = options.context
    with open(options.out + "/config.json", "w") as out:
        json.dump(CONFIG, out, indent=2)
        out.write("\n")
    print(f"done: {step} steps, {mean:.3f} nats a byte")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--out", default=".")
    parser.add_argument("--start", help="a model.safetensors to go on from")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=192)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--threads", type=int, default=1)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
