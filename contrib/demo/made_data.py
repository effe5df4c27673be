"""The demo's three datasets, made by rule: `python3 made_data.py FOLDER`, on the cluster.

Only whole numbers and `Random.random`, whose row Python promises to keep: the same bytes on every
machine, so that the manifest that was published stays true. No dependency: it runs on the nodes'
own Python.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

WIDTH = 32  # of a picture, in pixels
PICTURES = 400
CLASSES = 8
SENSORS = 12
MINUTES = 24 * 60
SENTENCES = 4000  # of each of the corpus's files
PARTS = 4

WORDS = {
    "thing": "node card queue model script folder leader student lake river stone bird lamp",
    "place": "garden harbour library valley kitchen station",
    "kind": "small quiet old green patient bright heavy early",
    "does": "watches carries finds follows paints counts waits-for remembers",
    "how": "slowly twice at-noon in-silence before-rain with-care",
}


def sentences() -> Iterator[tuple[str, bytes]]:
    """A corpus from a small grammar: parts to learn from, and one to check with."""
    chance = Random(7)  # noqa: S311 - data, no secret
    for part in (*(f"train-{n:02}.txt" for n in range(PARTS)), "validation.txt"):
        yield part, "".join(f"{_sentence(chance)}\n" for _ in range(SENTENCES)).encode()


def _sentence(chance: Random) -> str:
    words = [_thing(chance), _one(chance, "does"), _thing(chance)]
    if chance.random() < 0.5:
        words.append(f"in the {_one(chance, 'place')}")
    if chance.random() < 0.3:
        words.append(_one(chance, "how"))
    if chance.random() < 0.2:
        words.append(f"and {_sentence(chance)[:-1]}")
    return " ".join(words).replace("-", " ") + "."


def _thing(chance: Random) -> str:
    kind = f"{_one(chance, 'kind')} " if chance.random() < 0.6 else ""
    return f"the {kind}{_one(chance, 'thing')}"


def _one(chance: Random, which: str) -> str:
    words = WORDS[which].split()
    return words[int(chance.random() * len(words))]


def waves() -> Iterator[tuple[str, bytes]]:
    """Pictures (PPM, 32 x 32, 8 bits a colour) of stripes and rings in eight classes."""
    lines = ["file,class\n"]
    for number in range(PICTURES):
        kind = number % CLASSES
        name = f"pictures/{number:04}.ppm"
        lines.append(f"{name},{kind}\n")
        header = f"P6\n{WIDTH} {WIDTH}\n255\n".encode()
        yield name, header + bytes(_pixels(kind, shift=number // CLASSES))
    yield "classes.csv", "".join(lines).encode()


def _pixels(kind: int, *, shift: int) -> Iterator[int]:
    middle = WIDTH // 2
    pace = 7 + 3 * (kind % 4)
    for y in range(WIDTH):
        for x in range(WIDTH):
            far = (x - middle) ** 2 + (y - middle) ** 2 if kind >= CLASSES // 2 else 8 * (x + y)
            for colour in range(3):
                yield _triangle(pace * far // 8 + 5 * shift + 40 * colour)


def _triangle(at: int) -> int:
    """A wave of whole numbers from 0 to 255 and back."""
    place = at % 510
    return min(place, 510 - place)


def sensors() -> Iterator[tuple[str, bytes]]:
    """A day of readings a minute: a daily course, noise, and now and then a fault to find."""
    chance = Random(11)  # noqa: S311 - data, no secret
    for sensor in range(SENSORS):
        lines = ["minute,celsius,humidity,fault\n"]
        for minute in range(MINUTES):
            course = _triangle(minute * 510 // MINUTES + 30 * sensor)  # 0 to 255
            fault = chance.random() < 0.01
            celsius = 1200 + 4 * course + _noise(chance) + (900 if fault else 0)  # in hundredths
            humidity = 70 - course // 8 + _noise(chance) // 20
            lines.append(f"{minute},{celsius // 100}.{celsius % 100:02},{humidity},{int(fault)}\n")
        yield f"sensor-{sensor:02}.csv", "".join(lines).encode()


def _noise(chance: Random) -> int:
    return int(sum(chance.random() for _ in range(4)) * 50) - 100


MADE: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "sentences": sentences,
    "waves": waves,
    "sensors": sensors,
}


def make(place: Path) -> None:
    """NAME/v1 below `place` for each; what is there whole stays. Readable by all, to be written by
    whoever made it alone."""
    for name, files in MADE.items():
        final = place / name / "v1"
        if final.is_dir():
            continue
        part = place / name / "v1.part"
        for path, content in files():
            target = part / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        for one in (*part.rglob("*"), part, part.parent, place):
            one.chmod(0o755 if one.is_dir() else 0o644)
        part.rename(final)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
