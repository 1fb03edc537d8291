"""A page as a browser would take it apart."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """Checks that what is opened is closed, and gathers text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                assert str(value).startswith(("data:", "#")), f"{tag} needs {value}"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
