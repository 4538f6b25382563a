"""The command that trains by given settings."""

from samesense.recipes.train_command import train_command


def test_every_kind_of_value_is_written_as_the_command_line_takes_it():
    settings = {
        "model": "my models/start",
        "learning_rate": 2e-5,
        "symmetric": True,
        "report": False,
        "teacher": ["a", "b"],
        "matryoshka": [64, 32],
        "trainer": {"group_by_length": True},
    }
    assert train_command(settings) == (
        "samesense train DATA --model 'my models/start' --learning-rate 2e-05 --symmetric --no-report --teacher a "
        "--teacher b --matryoshka 64 --matryoshka 32 --trainer group_by_length=True --output RUN"
    )
