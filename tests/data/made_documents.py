"""Document files written byte by byte, so that tests need no program that writes them."""

import io
import zipfile
import zlib

_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_STYLES = (
    '<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>'
)
_DOCUMENT_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" '
    'Target="styles.xml"/>{}</Relationships>'
)


def paragraph(text, *, heading=False):
    style = '<w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>' if heading else ""
    return f'<w:p>{style}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def docx(body, *, title="", before="", relations="", files=()):
    """A Word file; ``before`` stands between the XML declaration and the document."""
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?>{before}'
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing">'
        f"<w:body>{body}</w:body></w:document>"
    )
    core = (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></cp:coreProperties>'
    )
    members = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONS,
        "word/document.xml": document,
        "word/styles.xml": _STYLES,
        "word/_rels/document.xml.rels": _DOCUMENT_RELATIONS.format(relations),
        **({"docProps/core.xml": core} if title else {}),
        **dict(files),
    }
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return held.getvalue()


def pdf(pages, *, title="", streams=None, filters=b"/FlateDecode", trailer=b""):
    """A PDF with a list of lines a page, or with streams as they are."""
    streams = streams or [zlib.compress(_page_stream(lines)) for lines in pages]
    numbers = [4 + 2 * index for index in range(len(streams))]
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(streams)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for number, stream in zip(numbers, streams, strict=True):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
            % (number + 1)
        )
        objects.append(b"<</Filter %s/Length %d>>stream\n%s\nendstream" % (filters, len(stream), stream))
    objects.append(b"<</Title(%s)>>" % title.encode("latin-1"))
    out = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    last = b"trailer<</Size %d/Root 1 0 R/Info %d 0 R%s>>\n" % (len(objects) + 1, len(objects), trailer)
    return out + head + table + last + b"startxref\n%d\n%%%%EOF" % len(out)


def _page_stream(lines):
    escaped = (line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in lines)
    text = " T* ".join(f"({line}) Tj" for line in escaped)
    return f"BT /F1 12 Tf 14 TL 50 700 Td {text} ET".encode("cp1252")
