"""PDF: extracts text, links, annotations, outline and attachments with PDFium."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.document_parser import (
    DocumentLimitError,
    DocumentParser,
    EncryptedDocumentError,
    ParsedDocument,
    UnreadableDocumentError,
)
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.pdf_limits import limit_pdf_content
from nutch2py.parser.formats.pdf_text import read_page_text
from nutch2py.parser.formats.pdf_types import PdfDocument, PdfPage, PdfTextPage
from nutch2py.parser.formats.unpack_budget import PackageBudget, unpack_budget
from nutch2py.records.webpage import WebPage

_PROPERTIES = {
    "Title": "title", "Author": "dc:creator", "Subject": "dc:subject", "Keywords": "meta:keyword",
    "Creator": "xmp:CreatorTool", "Producer": "pdf:producer",
}  # fmt: skip
# PDFium's marks for a hyphen at the end of a line, where the word continues
_LINE_END_HYPHEN = re.compile("[\x02\ufffe]\\r?\\n?")
_PDF_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-]\d\d)'?(\d\d)?|Z)?")
_MAX_LINKS = 10_000
_MAX_ELEMENTS = 10_000  # of the structure of a page
_MIN_REPLACEMENT_BYTES = 6  # of two characters in UTF-16 and the end: single ones stand for hyphens and bullets
_MAX_OPTIONS = 1_000
MAX_BOOKMARKS, _MAX_DEPTH = 10_000, 32
"""Bookmarks read, and levels of them."""
MAX_LINK_SCAN_CHARS = 20_000_000
"""Characters searched for links in all: PDFium searches the whole page for each link."""


class PdfParser(DocumentParser):
    """Extracts text page by page with links and annotations, then the outline and attached files.

    The restriction of copying is ignored: the author allows everyone to read the document.
    """

    content_types = "application/pdf"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a file; broken pages are skipped as long as one is readable."""
        import pypdfium2 as pdfium
        from pypdfium2 import raw

        start = content.find(b"%PDF-", 0, 1024)
        content = content[start:] if start > 0 else content
        try:
            pdf = pdfium.PdfDocument(limit_pdf_content(content, self.conf.get_int("parser.unpack.max.ratio", 100)))
            count = len(pdf)
        except pdfium.PdfiumError as error:
            if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
                raise EncryptedDocumentError("the PDF needs a password") from None
            raise UnreadableDocumentError(f"PDF: {error}") from None
        try:
            if pdf.get_formtype() == raw.FORMTYPE_ACRO_FORM:
                pdf.init_forms()
            self._read_metadata(pdf, count, document)
            broken = 0
            for number in range(count):
                if document.is_full:
                    break
                broken += not _read_page(pdf, number, document)
            if broken and broken == count:
                raise UnreadableDocumentError(f"PDF: none of {count} pages can be read")
            _read_outline(pdf, document)
            self._read_attachments(pdf, document, len(content))
        finally:
            pdf.close()

    def _read_metadata(self, pdf: PdfDocument, count: int, document: ParsedDocument) -> None:
        metadata = pdf.get_metadata_dict(skip_empty=True)
        for name, label in _PROPERTIES.items():
            document.set_metadata(label, metadata.get(name))
        for name, label in (("CreationDate", "dcterms:created"), ("ModDate", "dcterms:modified")):
            document.set_metadata(label, parse_pdf_date(metadata.get(name, "")))
        document.set_metadata("xmpTPg:NPages", count)

    def _read_attachments(self, pdf: PdfDocument, document: ParsedDocument, size: int) -> None:
        with unpack_budget(self.conf) as page_budget:
            budget = PackageBudget(page_budget, size)
            for number in range(min(pdf.count_attachments(), page_budget.documents_left)):
                try:
                    attachment = pdf.get_attachment(number)
                    name, data = attachment.get_name(), bytes(attachment.get_data())
                except Exception:  # noqa: BLE001, S112 - PDFium fails for an attachment without a stream
                    continue
                try:
                    budget.spend(len(data))
                    self._embedded_parser.parse_into(document, name, data)
                except DocumentLimitError:
                    return


class _Note(NamedTuple):
    """A note or a form field: its label, text, and whether the page shows it."""

    label: str
    text: str
    is_drawn: bool


class _Annotations(NamedTuple):
    """Content of the annotations of a page.

    ``links``: target and area; ``notes``: notes and fields; ``has_appearance``: whether an annotation is drawn.
    """

    links: list[tuple[str, tuple[float, float, float, float]]]
    notes: list[_Note]
    has_appearance: bool


def _read_page(pdf: PdfDocument, number: int, document: ParsedDocument) -> bool:
    import pypdfium2 as pdfium
    from pypdfium2 import raw

    try:
        page = pdf[number]
        annotations = _read_annotations(pdf, page)
        text_page = page.get_textpage()
        text = read_page_text(text_page)
        if annotations.has_appearance:
            # PDFium's text has no annotations: values of fields, captions of buttons and stamps become part of the page
            flat = None
            if raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
                text_page.close()
                page.close()
                page = pdf[number]
                text_page = page.get_textpage()
                flat = read_page_text(text_page)
            # a flattened page loses resources that it inherits, its fonts among them
            if flat is not None and not _letters(text) - _letters(flat):
                text = flat
            else:
                annotations = annotations._replace(
                    notes=[note._replace(is_drawn=False) for note in annotations.notes], has_appearance=False
                )
        text = _LINE_END_HYPHEN.sub("", text)
        document.add_text(text)
        _add_replacement_texts(pdf, page, text, document)
        _add_annotations(annotations, text, text_page, document)
        text_page.close()
        page.close()
    except pdfium.PdfiumError:
        return False
    return True


def _add_replacement_texts(pdf: PdfDocument, page: PdfPage, text: str, document: ParsedDocument) -> None:
    """Add texts that a tagged document has for what is drawn (``ActualText``), unless the page has the same text."""
    from pypdfium2 import raw

    if not raw.FPDFCatalog_IsTagged(pdf) or not (tree := raw.FPDF_StructTree_GetForPage(page)):
        return
    shown = ""
    waiting = [
        raw.FPDF_StructTree_GetChildAtIndex(tree, index)
        for index in range(min(raw.FPDF_StructTree_CountChildren(tree), _MAX_ELEMENTS))
    ]
    left = _MAX_ELEMENTS - len(waiting)
    waiting.reverse()
    while waiting:
        element = waiting.pop()
        if not element:  # drawn content
            continue
        if (size := raw.FPDF_StructElement_GetActualText(element, None, 0)) > _MIN_REPLACEMENT_BYTES:
            buffer = ctypes.create_string_buffer(size)
            raw.FPDF_StructElement_GetActualText(element, buffer, size)
            replacement = buffer.raw[: size - 2].decode("utf-16-le", "replace")
            shown = shown or "".join(text.split())
            if "".join(replacement.split()) not in shown:
                document.add_text(replacement)
        count = min(max(0, raw.FPDF_StructElement_CountChildren(element)), left)
        left -= count
        waiting += [raw.FPDF_StructElement_GetChildAtIndex(element, index) for index in reversed(range(count))]
    raw.FPDF_StructTree_Close(tree)


def _letters(text: str) -> Counter[str]:
    return Counter("".join(text.split()))


def _read_annotations(pdf: PdfDocument, page: PdfPage) -> _Annotations:
    """Return links, notes and form fields of a page."""
    from pypdfium2 import raw

    found = _Annotations([], [], has_appearance=False)
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_LINKS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_LINK:
            link = raw.FPDFAnnot_GetLink(annotation)
            target = _action_uri(pdf, raw.FPDFLink_GetAction(link)) if link else ""
            area = raw.FS_RECTF()
            if target:
                known = raw.FPDFAnnot_GetRect(annotation, area)
                found.links.append((target, (area.left, area.bottom, area.right, area.top) if known else (0, 0, 0, 0)))
        elif kind != raw.FPDF_ANNOT_POPUP:
            is_drawn = bool(raw.FPDFAnnot_HasKey(annotation, b"AP"))
            found = found._replace(has_appearance=found.has_appearance or is_drawn)
            texts = [
                _annotation_string(annotation, b"Contents"),
                _chosen_options(pdf, annotation) or _annotation_string(annotation, b"V"),
            ]
            if text := ": ".join(filter(None, texts)):  # after the note's author or the field's name
                found.notes.append(_Note(_annotation_string(annotation, b"T"), text, is_drawn))
        raw.FPDFPage_CloseAnnot(annotation)
    return found


def _chosen_options(pdf: PdfDocument, annotation: object) -> str:
    """Return the labels of the options that are chosen in a list; their values are for programs."""
    from pypdfium2 import raw

    form = pdf.formenv
    if form is None or raw.FPDFAnnot_GetFormFieldType(form, annotation) not in (
        raw.FPDF_FORMFIELD_COMBOBOX,
        raw.FPDF_FORMFIELD_LISTBOX,
    ):
        return ""
    labels = []
    for option in range(min(raw.FPDFAnnot_GetOptionCount(form, annotation), _MAX_OPTIONS)):
        if raw.FPDFAnnot_IsOptionSelected(form, annotation, option):
            size = raw.FPDFAnnot_GetOptionLabel(form, annotation, option, None, 0)
            buffer = ctypes.create_string_buffer(size)
            place = ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR))
            raw.FPDFAnnot_GetOptionLabel(form, annotation, option, place, size)
            labels.append(buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace"))
    return ", ".join(labels)


def _add_annotations(annotations: _Annotations, text: str, page: PdfTextPage, document: ParsedDocument) -> None:
    """Add the links of a page, with the covered text as anchors, and notes that its text does not have."""
    room, characters = MAX_LINK_SCAN_CHARS, max(0, page.count_chars())
    for target, area in annotations.links:
        anchor = ""
        room -= characters
        if room > 0 and area != (0, 0, 0, 0):
            anchor = page.get_text_bounded(*area, errors="ignore")
            room -= len(anchor)
        document.add_link(target, anchor)
    shown = " ".join(text.split()) if annotations.has_appearance else ""
    for label, note, is_drawn in annotations.notes:
        if not is_drawn or " ".join(note.split()) not in shown:
            document.add_text(": ".join(filter(None, (label, note))))


def _read_outline(pdf: PdfDocument, document: ParsedDocument) -> None:
    """Add titles and links of the outline (bookmarks); cycles are read once."""
    from pypdfium2 import raw

    seen: set[int] = set()
    waiting = [(raw.FPDFBookmark_GetFirstChild(pdf, None), 1)]
    while waiting and len(seen) < MAX_BOOKMARKS:
        bookmark, depth = waiting.pop()
        if not bookmark or (address := ctypes.addressof(bookmark.contents)) in seen:
            continue
        seen.add(address)
        size = raw.FPDFBookmark_GetTitle(bookmark, None, 0)
        buffer = ctypes.create_string_buffer(size)
        raw.FPDFBookmark_GetTitle(bookmark, buffer, size)
        title = buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace")
        document.add_text(title)
        if target := _action_uri(pdf, raw.FPDFBookmark_GetAction(bookmark)):
            document.add_link(target, title)
        waiting.append((raw.FPDFBookmark_GetNextSibling(pdf, bookmark), depth))
        if depth < _MAX_DEPTH:
            waiting.append((raw.FPDFBookmark_GetFirstChild(pdf, bookmark), depth + 1))


def _action_uri(pdf: PdfDocument, action: object) -> str:
    from pypdfium2 import raw

    if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
        return ""
    size = raw.FPDFAction_GetURIPath(pdf, action, None, 0)
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAction_GetURIPath(pdf, action, buffer, size)
    return buffer.value.decode("utf-8", "replace")


def _annotation_string(annotation: object, key: bytes) -> str:
    from pypdfium2 import raw

    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if size <= 2:  # only the terminating NUL of UTF-16
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")


def parse_pdf_date(text: str) -> str:
    """Return a PDF date in W3C format, "" when it is invalid.

    >>> parse_pdf_date("D:20070915104800+01'00'"), parse_pdf_date("D:2007"), parse_pdf_date("today")
    ('2007-09-15T10:48:00+01:00', '2007', '')
    """
    match = _PDF_DATE.match(text)
    if match is None:
        return ""
    year, month, day, hour, minute, second, zone, minutes = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    if not hour:
        return date
    return f"{date}T{hour}:{minute or '00'}:{second or '00'}" + (f"{zone}:{minutes or '00'}" if zone else "Z")
