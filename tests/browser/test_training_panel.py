"""Training files brought into the page: pasted, dropped and chosen; what they come to is shown and becomes the settings.

Belongs here: the panel with a training file. What files come to: ../test_training_files.py; models and adapters: test_bring.py.
"""

from playwright.sync_api import expect
from vramplan.catalogue import defaults

AXOLOTL = """base_model: Qwen/Qwen3-8B
adapter: qlora
load_in_4bit: true
lora_r: 64
lora_target_linear: true
sequence_len: 1024
micro_batch_size: 3
gradient_accumulation_steps: 2
optimizer: adamw_bnb_8bit
learning_rate: 2e-5
bf16: auto
gradient_checkpointing: true
peft_use_dora: true
"""


def test_a_pasted_training_file_fills_the_form_and_tells_of_every_key(calculator):
    calculator.bring(AXOLOTL)
    expect(calculator.brought.get_by_role("heading", name="Axolotl run")).to_be_visible()
    for name, value in (("model", "qwen3-8b"), ("rank", "64"), ("micro_batch", "3"), ("sequence_length", "1024")):
        calculator.expect_setting(name, value)
    assert "optimizer=adamw-8bit" in calculator.query and "stack=axolotl-0.19" in calculator.query
    rows = calculator.brought.get_by_role("listitem")
    expect(rows.filter(has_text="peft_use_dora")).to_contain_text("the run takes at least the estimate")
    calculator.brought.get_by_text("Read (", exact=False).click()
    expect(rows.filter(has_text="lora_r line 4: 64 → Adapter rank 64")).to_be_visible()
    calculator.brought.get_by_text("Ignored (", exact=False).click()
    expect(rows.filter(has_text="learning_rate")).to_be_visible()


def test_a_training_file_is_one_step_back(calculator):
    calculator.bring(AXOLOTL)
    expect(calculator.brought.get_by_role("heading", name="Axolotl run")).to_be_visible()
    calculator.expect_setting("rank", "64")
    calculator.page.go_back(wait_until="commit")
    calculator.expect_setting("rank", defaults()["rank"])


def test_a_script_is_chosen_and_a_file_dropped(calculator):
    calculator.choose_file("train.sh", b"trl sft --num_processes 2 \\\n  --model_name_or_path Qwen/Qwen3-4B --use_peft --lora_r 8\n")
    expect(calculator.brought.get_by_role("heading", name="TRL run")).to_be_visible()
    calculator.expect_setting("rank", "8")
    calculator.drop_file("axolotl.yml", AXOLOTL)
    expect(calculator.brought.get_by_role("heading", name="Axolotl run")).to_be_visible()
    expect(calculator.brought.get_by_text("From axolotl.yml.")).to_be_visible()


def test_a_run_that_is_not_counted_leaves_the_settings(calculator):
    calculator.bring(f"{AXOLOTL}rl: kto\n")
    expect(calculator.brought.get_by_text("The settings stay as they were", exact=False)).to_be_visible()
    calculator.expect_setting("rank", defaults()["rank"])


def test_a_broken_file_says_where(calculator):
    calculator.bring(f"{AXOLOTL}x: [1\n")
    expect(calculator.brought.get_by_text("This is not valid YAML in line", exact=False)).to_be_visible()


def test_it_is_all_reached_by_keyboard(calculator):
    calculator.open_bring()
    calculator.brought_text.fill(AXOLOTL)
    calculator.brought_text.press("Tab")
    expect(calculator.button("Read it")).to_be_focused()
    calculator.page.keyboard.press("Enter")
    expect(calculator.brought.get_by_role("heading", name="Axolotl run")).to_be_visible()
