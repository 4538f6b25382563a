from samesense.execution.trainer import newest_checkpoint


def test_a_checkpoint_without_the_head_is_passed_over(tmp_path):
    for step, files in ((3, ["loss.pt"]), (6, [])):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text('{"global_step": 1, "max_steps": 9}')
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", *files):
            (folder / name).touch()
    assert newest_checkpoint(tmp_path).name == "checkpoint-6"
    assert newest_checkpoint(tmp_path, also=["loss.pt"]).name == "checkpoint-3"
