from marshmallow import Schema, fields
from marshmallow.experimental.tally import Tally


class TrackSchema(Schema):
    title = fields.Str(required=True)
    seconds = fields.Int()


class AlbumSchema(Schema):
    title = fields.Str(required=True)
    tracks = fields.List(fields.Nested(TrackSchema))


def test_counts_fields_once_for_each_load():
    tally = Tally(AlbumSchema())
    assert tally.load({"title": "Low"}) == {"title": "Low"}
    assert tally.load({"tracks": [{"title": "V-2"}, {"seconds": 1}, {"seconds": 2}]}) is None
    assert (tally.loaded, tally.failed) == (2, 1)
    assert dict(tally.errors) == {"title": 1, "tracks.title": 1}


def test_most_common():
    tally = Tally(TrackSchema())
    for row in ({}, {"seconds": "x"}, {"title": "V-2", "seconds": "x"}, {"seconds": "y"}):
        tally.load(row)
    assert tally.most_common(1) == [("title", 3)] or tally.most_common(1) == [("seconds", 3)]
    assert len(tally.most_common()) == 2
