from samesense.context.files import append_json, read_json_lines


def test_lines_of_json_outlive_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "history.jsonl"
    assert read_json_lines(path) == []
    append_json(path, {"shard": 0})
    with path.open("a") as stream:
        stream.write('{"shard": 1, "sec')
    append_json(path, {"shard": 2})
    append_json(path, {"shard": 3})
    assert read_json_lines(path) == [{"shard": 0}, {"shard": 2}, {"shard": 3}]
    assert path.read_text().count("\n") == 4
