"""The images of a row reach the server at their marks, and a row never goes without them."""

import base64
import json

import pytest

from rewardkit.errors import DataError, SourceError
from rewardkit.evaluate import generate as generate_module
from rewardkit.evaluate.evaluation import evaluate, evaluate_responses
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.evaluate.questions import MAX_ROW_BYTES
from rewardkit.model_client.client import Server
from rewardkit.pages.images import media_type
from rewardkit.responses.store import part_path

PNG, JPEG = b"\x89PNG\r\n\x1a\n" + b"p" * 9, b"\xff\xd8\xff\xe0" + b"j" * 9


@pytest.fixture
def write_questions(parquet):
    def write(*pairs, name="images.parquet"):
        def prompt(i):
            return [
                {"role": "system", "content": "Look."},
                {"role": "user", "content": pairs[i][0]},
            ]

        own = {"question": lambda i: pairs[i][0], "images": lambda i: pairs[i][1]}
        return parquet(len(pairs), name, prompt=prompt, **own)

    return write


def run(server, parquet, api="chat", **options):
    generation = GenerationConfig(Server(server.url, api), "M", Sampling(api, seed=1), **options)
    evaluate(parquet, generation, parquet.with_suffix(".jsonl"))
    return [json.loads(line) for line in parquet.with_suffix(".jsonl").read_text().splitlines()]


def sent_content(body):
    """The text and the decoded images of a request's last message, in order."""
    return [
        part["text"] if part["type"] == "text" else decode(part["image_url"]["url"])
        for part in body["messages"][-1]["content"]
    ]


def decode(url):
    kind, _, text = url.removeprefix("data:").partition(";base64,")
    content = base64.b64decode(text, validate=True)
    assert kind == media_type(content) != ""
    return content


def test_each_image_is_sent_at_its_mark_with_its_own_type(serve, write_questions):
    parquet = write_questions(
        ("<image>Which is 0, this or <image>?\n", [PNG, JPEG]),
        ("Is it 1?<image>", [JPEG]),
        ("No image.", []),
    )
    with serve() as server:
        lines = run(server, parquet, n=2, concurrency=1)
    assert len(lines) == 6
    bodies = [server.bodies[i] for i in (0, 2)]
    assert sent_content(bodies[0]) == [PNG, "Which is 0, this or ", JPEG, "?\n"]
    assert sent_content(bodies[1]) == ["Is it 1?", JPEG]
    assert server.bodies[4]["messages"][-1]["content"] == "No image."
    assert bodies[0]["messages"][0] == {"role": "system", "content": "Look."}
    assert not any("iVBOR" in json.dumps(line) for line in lines)


@pytest.mark.parametrize(
    ("text", "images", "message"),
    [
        ("No mark", [PNG], "its prompt has <image> 0 times"),
        ("<image> and <image>", [PNG], "its prompt has <image> 2 times"),
        ("<image> is not there", [], "has 0 images"),
        ("<image>", [b"<svg/>"], "image 0 is not PNG"),
        ("<image>", [b""], "image 0 is not in the file"),
        ("<image>", [PNG + bytes(MAX_ROW_BYTES)], "Make them smaller"),
    ],
)
def test_a_row_whose_images_cannot_be_sent_ends_the_run_before_any_request(
    serve, write_questions, text, images, message
):
    parquet = write_questions(("fine <image>", [PNG]), (text, images))
    with serve() as server, pytest.raises(DataError, match=f"row 1: .*{message}"):
        run(server, parquet)
    with serve() as server, pytest.raises(DataError, match="row 0: .*--api chat"):
        run(server, parquet, api="completions")
    assert server.bodies == []
    assert not part_path(parquet.with_suffix(".jsonl")).exists()


def test_a_changed_image_does_not_resume_an_interrupted_run(serve, write_questions):
    fault = (500, {}, {"error": {"message": "engine died"}})
    parquet = write_questions(("<image> 0", [PNG]), ("<image> 1", [PNG]))
    with serve(faults={1: fault}) as server, pytest.raises(SourceError):
        run(server, parquet, tries=1, concurrency=1)
    write_questions(("<image> 0", [JPEG]), ("<image> 1", [PNG]))
    with serve() as server, pytest.raises(DataError, match="had other questions"):
        run(server, parquet)
    write_questions(("<image> 0", [PNG]), ("<image> 1", [PNG]))
    with serve() as server:
        assert len(run(server, parquet)) == 2
    assert len(server.bodies) == 1


def test_few_images_are_in_memory_at_a_time(serve, write_questions, monkeypatch):
    monkeypatch.setattr(generate_module, "MAX_IMAGE_BYTES", 3 * len(PNG))
    parquet = write_questions(*[(f"<image> {i}", [PNG]) for i in range(12)])
    with serve(seconds=0.02) as server:
        assert len(run(server, parquet)) == 12
    assert server.most == 3


def test_responses_that_exist_are_matched_by_their_image(serve, write_questions, tmp_path):
    parquet = write_questions(("<image> 0", [PNG]), ("<image> 1", [JPEG]))
    with serve() as server:
        run(server, parquet)
    out = parquet.with_suffix(".jsonl")
    assert evaluate_responses(parquet, [str(out)]).metrics.total.responses == 2
    other = write_questions(("<image> 0", [JPEG]), ("<image> 1", [JPEG]), name="o.parquet")
    with pytest.raises(DataError, match="another prompt"):
        evaluate_responses(other, [str(out)])
