# SPDX-License-Identifier: Apache-2.0
"""The R1 chat layout, as fathom renders it (src/llm/text/chat_deepseek.c)."""
BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
USER, ASSISTANT, THINK, THINK_END = "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"
CALLS_BEGIN, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL_BEGIN, CALL_END, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
OUTPUTS_BEGIN, OUTPUTS_END = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
OUTPUT_BEGIN, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"

# Id 0, 1, 2; then, after the learned vocabulary, the rest in DeepSeek-V3's order.
FIRST_TOKENS = [BOS, EOS, PAD]
LAST_TOKENS = [THINK, THINK_END, "<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", USER, ASSISTANT,
               "<|EOT|>", CALLS_BEGIN, CALLS_END, CALL_BEGIN, CALL_END, OUTPUTS_BEGIN, OUTPUTS_END,
               OUTPUT_BEGIN, OUTPUT_END, SEP]

TOOLS_TEXT = (
    "\n\n## Tools\n\nYou may call the functions below. To do so, end your answer with calls in "
    "exactly this form, one call per line:\n\n" + CALLS_BEGIN + CALL_BEGIN + "function" + SEP +
    "NAME\n```json\nARGUMENTS\n```" + CALL_END + CALLS_END +
    "\n\nNAME is a function's name and ARGUMENTS a JSON object that fits its parameters.\n")


def render_calls(calls):
    """calls: [(name, arguments as JSON text)]"""
    one = [f"{CALL_BEGIN}function{SEP}{name}\n```json\n{args}\n```{CALL_END}" for name, args in calls]
    return CALLS_BEGIN + "\n".join(one) + CALLS_END


def render_prompt(messages, tools, dump):
    """Prompt text up to where the model goes on.  dump: JSON writer for the list of tools."""
    out = [BOS] + ["\n\n".join(m["content"] for m in messages if m["role"] == "system")]
    if tools:
        out.append(TOOLS_TEXT + "".join("\n" + dump(t) for t in tools))
    results = False
    for m in messages:
        if m["role"] == "system":
            continue
        if m["role"] == "tool":
            out.append(("\n" if results else OUTPUTS_BEGIN) + OUTPUT_BEGIN + m["content"] + OUTPUT_END)
            results = True
            continue
        if results:
            out.append(OUTPUTS_END)
        if m["role"] == "user":
            out.append(USER + m["content"])
        else:
            calls = m.get("tool_calls") or []
            out.append(("" if results else ASSISTANT) + (m.get("content") or ""))
            out.append((render_calls(calls) if calls else "") + EOS)
        results = False
    return "".join(out) + (OUTPUTS_END if results else ASSISTANT + THINK + "\n")


def render_answer(sample):
    """What the model is to write.  After tool results it answers without thinking again."""
    body = sample["answer"] + (render_calls(sample["calls"]) if sample["calls"] else "") + EOS
    if sample["messages"][-1]["role"] == "tool":
        return body
    return f"{sample['think']}\n{THINK_END}\n\n{body}"
