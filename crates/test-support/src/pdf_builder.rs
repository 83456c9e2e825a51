//! Builder for minimal PDF files.

/// A file under construction. Objects 1 and 2 are the catalog and the page tree.
pub struct Builder {
    objects: Vec<Vec<u8>>,
    pages: Vec<usize>,
    catalog: String,
    trailer: String,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Fonts: `F1` is Helvetica, `F2` is bold, `F3` maps `a` to `z` to Hebrew letters.
    pub fn new() -> Builder {
        let mut builder = Builder::bare();
        let hebrew = "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange \
                      1 beginbfrange <61> <7a> <05D0> endbfrange endcmap end";
        builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
        builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>");
        let map = builder.stream("", hebrew.as_bytes());
        builder.object(&format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
        builder
    }

    /// Without fonts.
    pub fn bare() -> Builder {
        Builder {
            objects: vec![Vec::new(), Vec::new()],
            pages: Vec::new(),
            catalog: String::new(),
            trailer: String::new(),
        }
    }

    /// Number of objects, which is the number of the last one.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Adds an object and returns its number.
    pub fn object(&mut self, text: &str) -> usize {
        self.objects.push(text.as_bytes().to_vec());
        self.objects.len()
    }

    pub fn stream(&mut self, entries: &str, content: &[u8]) -> usize {
        let mut object = format!("<< {entries} /Length {} >>\nstream\n", content.len()).into_bytes();
        object.extend_from_slice(content);
        object.extend_from_slice(b"\nendstream");
        self.objects.push(object);
        self.objects.len()
    }

    /// Adds a page of 600 by 800 points with this content and returns its object number.
    pub fn page(&mut self, content: &str) -> usize {
        self.page_with(content.as_bytes(), "")
    }

    pub fn page_with(&mut self, content: &[u8], entries: &str) -> usize {
        let content = self.stream("", content);
        let fonts = "/Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 6 0 R >> >>";
        let fonts = if entries.contains("/Resources") { "" } else { fonts };
        let page = self.object(&format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {content} 0 R {entries} {fonts} >>"
        ));
        self.pages.push(page);
        page
    }

    /// Adds entries to the catalog.
    pub fn catalog(&mut self, entries: &str) {
        self.catalog.push_str(entries);
    }

    pub fn trailer(&mut self, entries: &str) {
        self.trailer.push_str(entries);
    }

    pub fn build(mut self) -> Vec<u8> {
        let kids: Vec<String> = self.pages.iter().map(|page| format!("{page} 0 R")).collect();
        self.objects[0] = format!("<< /Type /Catalog /Pages 2 0 R {} >>", self.catalog).into_bytes();
        self.objects[1] = format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len()).into_bytes();
        let mut file = b"%PDF-1.7\n".to_vec();
        let mut places = Vec::new();
        for (index, object) in self.objects.iter().enumerate() {
            places.push(file.len());
            file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
            file.extend_from_slice(object);
            file.extend_from_slice(b"\nendobj\n");
        }
        let table = file.len();
        file.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).as_bytes());
        for place in &places {
            file.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
        }
        let trailer = format!(
            "trailer\n<< /Size {} /Root 1 0 R {} >>\nstartxref\n{table}\n%%EOF\n",
            places.len() + 1,
            self.trailer
        );
        file.extend_from_slice(trailer.as_bytes());
        file
    }
}

/// Draws text at a position, from the lower left corner.
pub fn text(font: &str, size: u32, x: i32, y: i32, words: &str) -> String {
    format!("BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({words}) Tj ET\n")
}

/// Draws lines of text one below the other.
pub fn lines(x: i32, y: i32, lines: &[&str]) -> String {
    lines.iter().enumerate().map(|(index, line)| text("F1", 10, x, y - 12 * index as i32, line)).collect()
}
