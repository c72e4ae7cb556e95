"""Records: typed reading of cells, and mutations that hold the changed columns only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.records.cells import CellError, encode_float, encode_int, encode_long
from nutch2py.records.record import FieldNotReadError, Mutation
from nutch2py.records.webpage import Host, WebPage
from nutch2py.table.table_query import columns_of


def page(**families):
    fields = families.pop("fields", None)
    cells = {family.encode(): {q.encode(): v for q, v in columns.items()} for family, columns in families.items()}
    return WebPage(cells, fields)


def test_missing_cells_read_as_defaults():
    new = WebPage()
    assert (new.status, new.score, new.title, new.fetch_time) == (0, 0.0, None, 0)
    assert dict(new.markers) == {}
    assert new.mutation() is None


def test_cells_are_decoded_by_type():
    read = page(f={"st": encode_int(2), "ts": encode_long(5)}, s={"s": encode_float(0.5)}, mk={"dist": b"0"})
    assert (read.status, read.fetch_time, read.score, read.markers["dist"]) == (2, 5, 0.5, "0")


def test_field_not_in_query_raises_field_not_read_error():
    read = page(f={"st": encode_int(2)}, fields=frozenset([WebPage.status]))
    assert read.status == 2
    with pytest.raises(FieldNotReadError, match="fetchTime"):
        _ = read.fetch_time
    for access in (lambda: read.markers["x"], lambda: len(read.markers), lambda: "x" in read.markers,
                   lambda: read.markers.get("x"), lambda: list(read.markers.items())):  # fmt: skip
        with pytest.raises(FieldNotReadError, match="markers"):
            access()


def test_field_set_before_can_be_read():
    blind = WebPage(fields=frozenset())
    blind.status = 3
    blind.markers["x"] = "y"
    assert (blind.status, blind.markers["x"]) == (3, "y")
    assert blind.markers.pop("x") == "y"


def test_malformed_cell_error_names_column():
    with pytest.raises(CellError, match="f:st"):
        _ = page(f={"st": b"\0"}).status


def test_only_changed_columns_are_written():
    read = page(f={"st": encode_int(2), "ts": encode_long(5)}, mk={"a": b"1", "b": b"2"})
    read.status = 2
    read.fetch_time = 6
    read.markers["a"] = "1"
    read.markers["c"] = "3"
    del read.markers["b"]
    assert read.mutation() == Mutation({b"f": {b"ts": encode_long(6)}, b"mk": {b"c": b"3"}}, {b"mk": [b"b"]}, [])


def test_setting_unread_field_always_writes_it():
    blind = page(fields=frozenset())
    blind.status = 0
    assert blind.mutation() == Mutation({b"f": {b"st": encode_int(0)}}, {}, [])


def test_setting_none_deletes_column():
    read = page(p={"t": b"title"})
    read.title = None
    assert read.title is None
    assert read.mutation() == Mutation({}, {b"p": [b"t"]}, [])


def test_map_entry_set_to_none_is_removed():
    read = page(mk={"a": b"1"})
    read.markers["a"] = None
    assert "a" not in read.markers
    assert read.mutation() == Mutation({}, {b"mk": [b"a"]}, [])


ENTRIES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"))


@given(ENTRIES, st.booleans(), st.booleans(), st.lists(ENTRIES))
def test_map_update_equals_single_puts(before, known, cleared, puts):
    cells = {b"il": {key.encode(): value.encode() for key, value in before.items()}}
    together, alone = (WebPage(cells, None if known else frozenset()) for _ in range(2))
    for page in (together, alone):
        if cleared:
            page.inlinks.clear()
        page.inlinks.pop("a", None)
    for entries in puts:
        there = set(together.inlinks) if known or cleared else set()
        new = together.inlinks.put_all(entries)
        assert new == len(entries.keys() - there) or not (known or cleared)
        for key, value in entries.items():
            alone.inlinks[key] = value
    assert together.mutation() == alone.mutation()


def test_put_then_remove_of_new_entry_changes_nothing():
    read = page(mk={"a": b"1"})
    read.markers["b"] = "2"
    del read.markers["b"]
    assert read.mutation() is None
    with pytest.raises(KeyError):
        del read.markers["b"]


def test_replacing_read_map_writes_difference():
    read = page(ol={"http://a/": b"A", "http://b/": b"B"})
    read.outlinks = {"http://b/": "B", "http://c/": "C"}
    assert dict(read.outlinks) == {"http://b/": "B", "http://c/": "C"}
    assert read.mutation() == Mutation({b"ol": {b"http://c/": b"C"}}, {b"ol": [b"http://a/"]}, [])


def test_replacing_unread_map_clears_family():
    blind = page(fields=frozenset())
    blind.outlinks = {"http://c/": "C"}
    assert dict(blind.outlinks) == {"http://c/": "C"}
    assert blind.mutation() == Mutation({b"ol": {b"http://c/": b"C"}}, {}, [b"ol"])


def test_clearing_and_restoring_map_changes_nothing():
    read = page(mk={"a": b"1"})
    read.markers.clear()
    assert len(read.markers) == 0
    read.markers["a"] = "1"
    assert read.mutation() is None


def test_map_assigned_to_itself_changes_nothing():
    read = page(mk={"a": b"1"})
    read.markers = read.markers
    assert dict(read.markers) == {"a": "1"}
    assert read.mutation() is None


def test_removing_from_unread_map_writes_deletion():
    blind = page(fields=frozenset())
    assert blind.markers.pop("a", "none") == "none"
    assert blind.mutation() == Mutation({}, {b"mk": [b"a"]}, [])


def test_map_supports_comparison_iteration_and_repr():
    read = page(mtdt={"k": b"\xff"}, mk={"a": b"1", "b": b"2"})
    assert read.markers == {"a": "1", "b": "2"}
    assert list(read.markers.values()) == ["1", "2"]
    assert ("a", "1") in read.markers.items()
    assert read.metadata["k"] == b"\xff"
    assert "markers" in repr(read)


def test_non_text_qualifiers_are_kept():
    read = WebPage({b"h": {b"\xff": b"v", b"a": b"w"}})
    assert list(read.headers.items()) == [("\ufffd", "v"), ("a", "w")]
    assert list(read.headers.values()) == ["v", "w"]
    read.headers["a"] = "x"
    assert read.mutation() == Mutation({b"h": {b"a": b"x"}}, {}, [])


def test_family_is_unpacked_once_on_demand():
    class Counting:
        families = (b"f", b"mk", b"h")

        def __init__(self):
            self.asked = []

        def columns(self, row, family):
            self.asked.append(family)
            return row.get(family, {})

    packed = Counting()
    read = WebPage(None, None, packed, {b"f": {b"st": encode_int(2), b"fi": encode_int(3)}, b"mk": {b"a": b"1"}})
    assert packed.asked == []
    assert (read.status, read.fetch_interval) == (2, 3)
    assert packed.asked == [b"f"]
    assert read.cells == {b"f": {b"st": encode_int(2), b"fi": encode_int(3)}, b"mk": {b"a": b"1"}}
    assert read.markers["a"] == "1"
    assert packed.asked == [b"f", b"mk", b"h"]


def test_size_counts_qualifiers_and_values():
    assert Mutation({b"f": {b"st": b"1234", b"x": b""}}, {}, []).size == 7


def test_columns_of_field_are_returned():
    assert columns_of([WebPage.status, WebPage.fetch_time, WebPage.markers, WebPage.score]) == {
        b"f": frozenset([b"st", b"ts"]), b"mk": None, b"s": frozenset([b"s"]),
    }  # fmt: skip
    assert columns_of(Host.FIELDS.values()) == {b"mtdt": None, b"ol": None, b"il": None}


def test_changes_of_one_record_apply_to_another() -> None:
    cells = {b"f": {b"bas": b"http://h/"}, b"mk": {b"a": b"1", b"b": b"2"}, b"mtdt": {b"x": b"y"}}
    one, other = (WebPage({family: dict(columns) for family, columns in cells.items()}) for _ in range(2))
    one.base_url, one.title = None, "t"
    one.markers["a"] = "9"
    del one.markers["b"]
    one.metadata.clear()
    one.outlinks["http://l/"] = "anchor"
    mutation = one.mutation()
    assert mutation is not None
    other.title = "former"
    other.apply_mutation(mutation)
    assert other.mutation() == mutation
    assert (other.base_url, other.title, dict(other.markers), dict(other.metadata)) == (None, "t", {"a": "9"}, {})
    fields = (WebPage.base_url, WebPage.title, WebPage.markers, WebPage.metadata, WebPage.outlinks)
    assert other.current_cells(fields) == one.current_cells(fields)
    assert other.current_cells({WebPage.markers}) == {b"mk": {b"a": b"9"}}
