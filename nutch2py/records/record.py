"""Records over cells: typed fields that are decoded on access and track changes.

A record is created from the cells that a store read (``family -> qualifier -> value``) and from the fields that the
query named. Values are decoded lazily, and :meth:`Record.mutation` contains the changed columns only, so a job that
sets one mark writes one cell. Reading a field that the query did not name is a bug of the job: it raises
:class:`FieldNotReadError` instead of returning a default.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, overload

from nutch2py.records.cells import CellError, decode_entries, encode_entries, encode_text

T = TypeVar("T")
D = TypeVar("D")


class DecodableMapping(Protocol[T]):
    """A mapping that can decode all of its entries at once, which is faster than one by one."""

    def decoded_items(self) -> list[tuple[str, T]]:
        """Return the entries with decoded values."""


class DecodedItemsView(ItemsView[str, T]):
    """The entries, decoded at once."""

    _mapping: DecodableMapping[T]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter(self._mapping.decoded_items())


class DecodedValuesView(ValuesView[T]):
    """The values, decoded at once."""

    _mapping: DecodableMapping[T]

    def __iter__(self) -> Iterator[T]:
        return iter([value for _, value in self._mapping.decoded_items()])


Columns = dict[bytes, bytes]
Cells = dict[bytes, Columns]
"""``family -> qualifier -> value``."""

_NO_COLUMNS: Columns = {}


class FieldNotReadError(LookupError):
    """A job read a field that its query did not name."""


class PackedRowReader(Protocol):
    """Decodes the columns of a packed row; called once per family, on first access."""

    @property
    def families(self) -> tuple[bytes, ...]:
        """The families that were read."""

    def columns(self, row: Any, family: bytes) -> Columns:
        """Return the columns of ``family`` that the query named."""


class Mutation(NamedTuple):
    """The changes to one row: families and columns are deleted first, then values are put."""

    puts: Cells
    deletes: dict[bytes, list[bytes]]
    cleared_families: list[bytes]

    @property
    def size(self) -> int:
        """Bytes of the values and qualifiers put."""
        return sum(sum(map(len, columns)) + sum(map(len, columns.values())) for columns in self.puts.values())


class RecordField:
    """A field of a record, whatever the type of its values: name, column and encoding.

    ``name`` is the Avro field, ``column`` its ``family:qualifier``.
    """

    is_map = False

    def __init__(self, name: str, column: str, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> None:
        self.name, self.column = name, column
        family, _, qualifier = column.partition(":")
        self.family, self.qualifier = family.encode(), qualifier.encode()
        self.encode, self.decode = encode, decode
        self.attribute = name

    def __repr__(self) -> str:
        return f"<{self.name} {self.column}>"


class Field(RecordField, Generic[T]):
    """A scalar column: descriptor of a :class:`Record`.

    ``default`` is the value of an absent cell. A cell that is not of the type raises
    :class:`nutch2py.records.cells.CellError` with the name of the column.
    """

    def __init__(
        self, name: str, column: str, default: T, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]
    ) -> None:
        super().__init__(name, column, encode, decode)
        self.default = default

    def __set_name__(self, owner: type[Record], attribute: str) -> None:
        self.attribute = attribute
        owner.FIELDS = {**owner.FIELDS, self.name: self}

    @overload
    def __get__(self, record: None, owner: type[Record]) -> Self: ...
    @overload
    def __get__(self, record: Record, owner: type[Record]) -> T: ...
    def __get__(self, record: Record | None, owner: type[Record]) -> T | Self:
        if record is None:
            return self
        values = record._values
        value: T
        if self in values:
            value = values[self]
            return value
        cell = record.columns(self.family).get(self.qualifier)
        if cell is None:
            record._check_read(self)
            return self.default
        try:
            value = self.decode(cell)
        except CellError as error:
            raise CellError(f"{self.column}: {error}") from error
        values[self] = value
        return value

    def __set__(self, record: Record, value: T) -> None:
        record._values[self] = value
        record._dirty[self] = None


class MapField(Field[Any], Generic[T]):
    """A map column: one family, a qualifier per entry. Its value is a :class:`MapValue`."""

    is_map = True

    def __init__(self, name: str, family: str, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> None:
        super().__init__(name, family, None, encode, decode)

    @overload
    def __get__(self, record: None, owner: type[Record]) -> Self: ...
    @overload
    def __get__(self, record: Record, owner: type[Record]) -> MapValue[T]: ...
    def __get__(self, record: Record | None, owner: type[Record]) -> MapValue[T] | Self:
        if record is None:
            return self
        found: MapValue[T] | None = record._values.get(self)
        if found is None:
            known = record._fields is None or self in record._fields
            found = record._values[self] = MapValue(self, record.columns(self.family), known)
        return found

    def __set__(self, record: Record, value: Mapping[str, T]) -> None:
        entries = self.__get__(record, type(record))
        entries.replace(value)


class MapValue(MutableMapping[str, T]):
    """The entries of a map column, decoded one by one; tracks puts and removals.

    If the query did not name the map, entries can be put, removed and cleared, but not read.
    """

    __slots__ = ("_changes", "_cleared", "_field", "_is_read", "_raw")

    def __init__(self, field: MapField[T], raw: Columns, known: bool) -> None:
        self._field, self._raw, self._is_read = field, raw, known
        self._changes: dict[bytes, bytes | None] = {}  # None: removed
        self._cleared = False

    @property
    def is_cleared(self) -> bool:
        """Whether all entries that were read have been removed: the current ones were put since."""
        return self._cleared

    def _check_read(self) -> None:
        if not self._is_read and not self._cleared:
            raise FieldNotReadError(f"{self._field.name} was not read: name it in the query")

    def _get_cell(self, qualifier: bytes) -> bytes | None:
        if qualifier in self._changes:
            return self._changes[qualifier]
        self._check_read()
        return None if self._cleared else self._raw.get(qualifier)

    def __getitem__(self, key: str) -> T:
        cell = self._get_cell(encode_text(key))
        if cell is None:
            raise KeyError(key)
        value: T = self._field.decode(cell)
        return value

    @overload
    def get(self, key: str, default: None = None) -> T | None: ...
    @overload
    def get(self, key: str, default: T) -> T: ...
    @overload
    def get(self, key: str, default: D) -> T | D: ...
    def get(self, key: str, default: object = None) -> object:
        """Return the value of an entry, or ``default``."""
        cell = self._get_cell(encode_text(key))
        return default if cell is None else self._field.decode(cell)

    def __contains__(self, key: object) -> bool:
        return self._get_cell(encode_text(str(key))) is not None

    def __setitem__(self, key: str, value: T) -> None:
        if value is None:
            self.pop(key, None)
            return
        qualifier, cell = encode_text(key), self._field.encode(value)
        if self._is_read and not self._cleared and self._raw.get(qualifier) == cell:
            self._changes.pop(qualifier, None)
        else:
            self._changes[qualifier] = cell

    def put_all(self, entries: Mapping[str, T]) -> int:
        """Set entries that are not None; return the number of entries not known to exist before."""
        raw, changed = (self._raw if self._is_read and not self._cleared else _NO_COLUMNS), self._changes
        cells = encode_entries(entries, self._field.encode)
        there = sum(changed.get(each, raw.get(each)) is not None for each in cells) if raw or changed else 0
        changed.update(cells)
        for qualifier in cells.keys() & raw.keys():
            if cells[qualifier] == raw[qualifier]:
                del changed[qualifier]
        return len(cells) - there

    def __delitem__(self, key: str) -> None:
        qualifier = encode_text(key)
        if self._is_read and self._get_cell(qualifier) is None:
            raise KeyError(key)
        self._remove(qualifier)

    @overload  # type: ignore[override]  # a missing entry gives None instead of a KeyError
    def pop(self, key: str, default: None = None) -> T | None: ...
    @overload
    def pop(self, key: str, default: T) -> T: ...
    @overload
    def pop(self, key: str, default: D) -> T | D: ...
    def pop(self, key: str, default: object = None) -> object:
        """Remove an entry; return its value, or ``default`` if it is missing or the map was not read."""
        qualifier = encode_text(key)
        if self._is_read and qualifier not in self._changes and qualifier not in self._raw:
            return default  # fast path: most removals are of entries that do not exist
        cell = self._get_cell(qualifier) if self._is_read or self._cleared else self._changes.get(qualifier)
        self._remove(qualifier)
        return default if cell is None else self._field.decode(cell)

    def _remove(self, qualifier: bytes) -> None:
        if self._is_read and (self._cleared or qualifier not in self._raw):
            self._changes.pop(qualifier, None)
        else:
            self._changes[qualifier] = None

    def clear(self) -> None:
        """Remove every entry, also those that were not read."""
        self._changes.clear()
        self._cleared = True

    def replace(self, entries: Mapping[str, T]) -> None:
        """Replace all entries with ``entries``; values that the table already has are not written again."""
        if None in entries.values():
            entries = {key: value for key, value in entries.items() if value is not None}
        cells = encode_entries(entries, self._field.encode)
        self.clear()
        self._changes.update(cells)

    def raw_cells(self) -> Columns:
        """Return the current entries as qualifier and cell."""
        self._check_read()
        if not self._changes and not self._cleared:
            return self._raw
        merged: dict[bytes, bytes | None] = {**({} if self._cleared else self._raw), **self._changes}
        return {qualifier: cell for qualifier, cell in merged.items() if cell is not None}

    def __iter__(self) -> Iterator[str]:
        return iter([qualifier.decode("utf-8", "replace") for qualifier in self.raw_cells()])

    def decoded_items(self) -> list[tuple[str, T]]:
        """Return the entries as a list of key and value; faster than ``items()``."""
        return decode_entries(self.raw_cells(), self._field.decode)

    def items(self) -> ItemsView[str, T]:
        """Return keys and values, including qualifiers that are not UTF-8 and cannot be looked up by key."""
        return DecodedItemsView(self)

    def values(self) -> ValuesView[T]:
        """Return the values, in the order of :meth:`items`."""
        return DecodedValuesView(self)

    def __len__(self) -> int:
        return len(self.raw_cells())

    def _apply(self, puts: Columns, deletes: Iterable[bytes], cleared: bool) -> None:
        if cleared:
            self.clear()
        for qualifier in deletes:
            self._remove(qualifier)
        for qualifier, cell in puts.items():
            if self._is_read and not self._cleared and self._raw.get(qualifier) == cell:
                self._changes.pop(qualifier, None)
            else:
                self._changes[qualifier] = cell

    def _add_changes(self, mutation: Mutation) -> None:
        if not self._changes and not self._cleared:
            return
        family, puts, deletes = self._field.family, {}, []
        if self._is_read and not self._raw:
            puts = {qualifier: cell for qualifier, cell in self._changes.items() if cell is not None}
        elif (
            self._cleared and self._is_read
        ):  # unchanged entries are not rewritten; all columns are known, so none can be missed
            now = {qualifier: cell for qualifier, cell in self._changes.items() if cell is not None}
            puts = {qualifier: cell for qualifier, cell in now.items() if self._raw.get(qualifier) != cell}
            deletes = [qualifier for qualifier in self._raw if qualifier not in now]
        else:
            if self._cleared:
                mutation.cleared_families.append(family)
            for qualifier, cell in self._changes.items():
                if cell is not None:
                    puts[qualifier] = cell
                elif not self._cleared:
                    deletes.append(qualifier)
        if puts:  # a map has a family of its own
            mutation.puts[family] = puts
        if deletes:
            mutation.deletes[family] = deletes

    def __repr__(self) -> str:
        return f"MapValue({dict(self.decoded_items())!r})" if self._is_read or self._cleared else "MapValue(<not read>)"


class Record:
    """One row. Subclasses declare :class:`Field` and :class:`MapField` attributes in the order of their Avro schema.

    ``cells`` as read from the store (none for a new row); ``fields``: those that the query named, None for all. A store
    that keeps rows packed passes ``packed`` and ``row`` instead of ``cells``: columns are then unpacked on access.
    """

    FIELDS: ClassVar[dict[str, Field[Any]]] = {}
    SCHEMA: ClassVar[str] = ""
    __slots__ = ("_cells", "_dirty", "_fields", "_packed", "_row", "_values")

    def __init__(
        self,
        cells: Cells | None = None,
        fields: frozenset[RecordField] | None = None,
        packed: PackedRowReader | None = None,
        row: object = None,
    ) -> None:
        self._cells: Cells = {} if cells is None else cells
        self._fields, self._packed, self._row = fields, packed, row
        self._values: dict[RecordField, Any] = {}
        self._dirty: dict[RecordField, None] = {}  # in the order set, so that equal runs write equal bytes

    def columns(self, family: bytes) -> Columns:
        """Return the cells of one family as they were read."""
        found = self._cells.get(family)
        if found is None:
            if self._packed is None:
                return _NO_COLUMNS
            found = self._cells[family] = self._packed.columns(self._row, family)
        return found

    @property
    def cells(self) -> Cells:
        """The cells as they were read, by non-empty family."""
        if self._packed is not None:
            every = {family: self.columns(family) for family in self._packed.families}
            self._cells, self._packed, self._row = {f: columns for f, columns in every.items() if columns}, None, None
        return self._cells

    def _check_read(self, field: RecordField) -> None:
        if self._fields is not None and field not in self._fields:
            raise FieldNotReadError(f"{field.name} was not read: name it in the query")

    def current_cells(self, fields: Iterable[RecordField]) -> Cells:
        """Return the current cells of ``fields``, including changes."""
        if fields == self._fields and not self._dirty and self.mutation() is None:
            return self.cells
        cells: Cells = {}
        for field in fields:
            family, columns = field.family, self.columns(field.family)
            if field.is_map:
                value = self._values.get(field)
                if value is not None:
                    columns = value.raw_cells()
                if columns:
                    cells.setdefault(family, {}).update(columns)
                continue
            if field in self._dirty:
                value = self._values[field]
                cell = None if value is None else field.encode(value)
            else:
                cell = columns.get(field.qualifier)
            if cell is not None:
                cells.setdefault(family, {})[field.qualifier] = cell
        return cells

    def apply_mutation(self, mutation: Mutation) -> None:
        """Apply the changes of another record of the same row."""
        for field in self.FIELDS.values():
            family = field.family
            puts, deletes = mutation.puts.get(family, _NO_COLUMNS), mutation.deletes.get(family, ())
            if isinstance(field, MapField):
                if puts or deletes or family in mutation.cleared_families:
                    field.__get__(self, type(self))._apply(puts, deletes, family in mutation.cleared_families)
            elif field.qualifier in puts:
                field.__set__(self, field.decode(puts[field.qualifier]))
            elif field.qualifier in deletes:
                field.__set__(self, None)

    def mutation(self) -> Mutation | None:
        """Return the changes since the record was read, None without changes."""
        mutation = Mutation({}, {}, [])
        puts, values = mutation.puts, self._values
        new = self._packed is None and not self._cells
        for field in self._dirty:
            value = values[field]
            family = field.family
            if value is None:
                mutation.deletes.setdefault(family, []).append(field.qualifier)
                continue
            cell = field.encode(value)
            if new or self.columns(family).get(field.qualifier) != cell:
                if family in puts:
                    puts[family][field.qualifier] = cell
                else:
                    puts[family] = {field.qualifier: cell}
        for value in values.values():
            if type(value) is MapValue:
                value._add_changes(mutation)
        return mutation if puts or mutation.deletes or mutation.cleared_families else None

    def __repr__(self) -> str:
        shown = [f for f in self.FIELDS.values() if self._fields is None or f in self._fields]
        values = [(f.attribute, f.default, getattr(self, f.attribute)) for f in shown]
        content = ", ".join(f"{name}={value!r}" for name, default, value in values if value not in (None, default))
        return f"{type(self).__name__}({content})"
