use crate::{Block, BlockKind, Document, Error, Format, Options, document};

fn all(html: &str) -> Document {
    document(html.as_bytes(), Format::Html, &Options { full: true, ..Options::default() }).unwrap()
}

fn kinds(html: &str) -> Vec<(BlockKind, String)> {
    let blocks = all(html).pages.remove(0).blocks;
    blocks.into_iter().map(|Block { kind, text, .. }| (kind, text)).collect()
}

fn texts(html: &str) -> Vec<String> {
    kinds(html).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn headings_paragraphs_and_lists_are_told_apart() {
    let found = kinds("<h2>One\n two</h2>lead <p>para<b>graph</b><ul><li>a<ul><li>b</ul>more<li>c</ul>");
    let item = |depth| BlockKind::ListItem { depth };
    let wanted = [
        (BlockKind::Heading { level: 2 }, "One two"),
        (BlockKind::Paragraph, "lead"),
        (BlockKind::Paragraph, "paragraph"),
        (item(0), "a"),
        (item(1), "b"),
        (BlockKind::Paragraph, "more"),
        (item(0), "c"),
    ];
    assert_eq!(found, wanted.map(|(kind, text)| (kind, text.to_owned())));
}

#[test]
fn what_cannot_be_seen_is_not_read() {
    let html = "<script>a</script><style>b</style><template>c</template><noscript>d</noscript>\
        <p hidden>e</p><p style='color:red; display : none'>f</p><p aria-hidden=true>seen</p><!-- g -->";
    assert_eq!(texts(html), ["seen"]);
}

#[test]
fn a_table_keeps_its_rows_and_the_titles_of_its_columns() {
    let html = "<table><caption>Sizes</caption><tr><th>name<th>size<tr><td>box<td><p>3</p><p>4</p>\
        <tr><td colspan=2>both</table>";
    let found = kinds(html);
    assert_eq!(found[0], (BlockKind::Caption, "Sizes".to_owned()));
    assert_eq!(found[1].1, "name\tsize\nbox\t3 4\nboth");
    assert!(matches!(&found[1].0, BlockKind::Table(table) if table.header_rows == 1));
}

#[test]
fn a_table_that_only_places_things_is_none() {
    let html = "<table><tr><td><h1>Title</h1><td><table><tr><td>a<td>b</table></table>";
    let found = kinds(html);
    assert_eq!(found[0], (BlockKind::Heading { level: 1 }, "Title".to_owned()));
    assert_eq!(found[1].1, "a\tb");
}

#[test]
fn code_keeps_its_lines_and_breaks_part_paragraphs() {
    assert_eq!(kinds("<pre>a\n  b\n</pre>"), [(BlockKind::Code, "a\n  b".to_owned())]);
    assert_eq!(texts("one<br>two<br><br>three"), ["one\ntwo", "three"]);
}

#[test]
fn pictures_are_described_unless_a_caption_does() {
    assert_eq!(texts("<p>see <img alt='a cat'> here"), ["see here", "a cat"]);
    assert_eq!(texts("<figure><img alt='a cat'><figcaption>Tom</figcaption></figure>"), ["Tom"]);
    assert_eq!(texts("<p>x</p><img alt='IMG_01.jpg'>"), ["x"]);
}

#[test]
fn words_in_drawings_and_formulas_are_apart() {
    let svg = "<p>an<svg><title>x y</title><g><text>o<tspan>n</tspan>e</text></g><text>two</text></svg>axis";
    assert_eq!(texts(svg), ["an x y one two axis"]);
    assert_eq!(texts("<p>(<math><mi>x</mi><mo>=</mo><mn>1</mn></math>)"), ["(x = 1)"]);
}

#[test]
fn a_number_raised_above_another_stays_apart_from_it() {
    let html = "<p>10<sup>6</sup> people, 5<sup>-3</sup>, the 10<sup>th</sup>, m<sup>2</sup>, it<sup>1</sup>";
    assert_eq!(texts(html), ["10^6 people, 5^-3, the 10th, m2, it1"]);
}

#[test]
fn fields_and_choices_are_read() {
    let found =
        kinds("<label>Name</label><input value=Ada><select><option>a<option>b</select><input type=hidden value=x>");
    let texts: Vec<_> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["Name", "Ada", "a b"]);
    assert_eq!(found[1].0, BlockKind::Field);
}

#[test]
fn the_page_says_what_it_is() {
    let html = "<html lang=de><head><title> A\n title</title><meta name=author content=Ada>\
        <meta name=description content='about it'><meta property=article:published_time content=2024-05-06T07:08:09Z>\
        <body><p>text";
    let metadata = all(html).metadata;
    assert_eq!(metadata.title.as_deref(), Some("A title"));
    assert_eq!(metadata.author.as_deref(), Some("Ada"));
    assert_eq!(metadata.subject.as_deref(), Some("about it"));
    assert_eq!(metadata.language.as_deref(), Some("de"));
    assert_eq!(metadata.created.as_deref(), Some("2024-05-06T07:08:09Z"));
}

#[test]
fn the_main_part_is_found_and_the_rest_left_out() {
    let sentence = "The quick brown fox, being quick, jumps over the lazy dog, which is lazy, again and again. ";
    let html = format!(
        "<body><nav><ul><li><a href=/>Start</a><li><a href=/news>News</a></ul></nav><article><h2>Foxes</h2>{}\
         </article><footer>Imprint and terms</footer>",
        format!("<p>{}</p>", sentence.repeat(5)).repeat(5)
    );
    let main = document(html.as_bytes(), Format::Html, &Options::default()).unwrap().text();
    assert!(main.contains("lazy dog") && !main.contains("Imprint") && !main.contains("News"), "{main}");
    assert!(all(&html).text().contains("Imprint"));
}

#[test]
fn the_heading_of_an_article_is_kept_above_its_others_also_where_it_repeats_the_title() {
    let sentence = "The quick brown fox, being quick, jumps over the lazy dog, which is lazy, again and again. ";
    let text = format!("<p>{}</p>", sentence.repeat(5)).repeat(3);
    for title in ["All about foxes", "All about foxes | The Daily Den", "Home"] {
        let html = format!(
            "<title>{title}</title><body><nav><a href=/>Start</a></nav><article><h1>All about foxes</h1>{text}\
             <h2>Where they live</h2>{text}<h3>In winter</h3>{text}</article><footer>Imprint</footer>"
        );
        let document = document(html.as_bytes(), Format::Html, &Options::default()).unwrap();
        let headings: Vec<_> = document.pages[0]
            .blocks
            .iter()
            .filter(|block| matches!(block.kind, BlockKind::Heading { .. }))
            .map(|block| (block.kind.clone(), block.text.as_str()))
            .collect();
        let heading = |level| BlockKind::Heading { level };
        let wanted = [(heading(1), "All about foxes"), (heading(2), "Where they live"), (heading(3), "In winter")];
        assert_eq!(headings, wanted, "below the title {title}");
    }
}

#[test]
fn a_page_without_a_main_part_is_read_whole() {
    let html = "<body><nav>Start News</nav><form><label>Name</label></form><footer>Imprint</footer>";
    let text = document(html.as_bytes(), Format::Html, &Options::default()).unwrap().text();
    assert!(text.contains("Name") && text.contains("Imprint"), "{text}");
}

#[test]
fn a_page_nested_without_end_still_gives_its_words() {
    let html = format!("{}one<div>two{}<p>three", "<div>".repeat(300_000), "</div>".repeat(300_001));
    for full in [true, false] {
        let text = document(html.as_bytes(), Format::Html, &Options { full, ..Options::default() }).unwrap().text();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["one", "two", "three"]);
    }
}

#[test]
fn the_title_counts_where_it_is_a_part_of_the_text() {
    let limits = crate::Limits { characters: 10, ..crate::Limits::default() };
    let options = |full| Options { limits: limits.clone(), full, ..Options::default() };
    let read = |full| document(b"<title>Eleven long</title><p>x", Format::Html, &options(full));
    assert_eq!(read(true), Err(Error::TooMuch { what: "characters", most: 10 }));
    assert!(read(false).is_ok());
}

#[test]
fn no_way_of_nesting_goes_deeper_than_allowed() {
    let many = |piece: &str| piece.repeat(10_000);
    let pages = [
        format!("<svg>{}x", many("<source>")),
        format!("<svg>{}x{}", many("<source>"), many("</x>")),
        format!("<math>{}x", many("<col></x>")),
        format!("{}x", many("<div></x>")),
        format!("<table>{}x", many("<div>")),
        format!("<table>{}x", many("<b><div></x>")),
    ];
    for html in pages {
        for full in [true, false] {
            let text = document(html.as_bytes(), Format::Html, &Options { full, ..Options::default() }).unwrap().text();
            assert_eq!(text, "x", "{}", &html[..30]);
        }
    }
}

#[test]
fn more_elements_or_attributes_than_any_page_has_are_refused() {
    let read = |html: &str| document(html.as_bytes(), Format::Html, &Options::default());
    let elements = "<p>a".repeat(600_000);
    assert_eq!(read(&elements), Err(Error::TooMuch { what: "elements", most: 1_000_000 }));
    let attributes: String = (0..100_000).map(|number| format!(" a{number}='>'")).collect();
    let refused = Err(Error::TooMuch { what: "attributes on one element", most: 20_000 });
    for before in ["", "<!-->", "<textarea><x a=\"</textarea>", "<svg><desc><![CDATA[<x a=']]></desc>", "</"] {
        assert_eq!(read(&format!("{before}<p{attributes}>x")), refused, "{before}");
    }
    assert_eq!(read(&format!("<p{}>x", attributes.replace("='>'", " <b"))), refused);
}

#[test]
fn much_that_only_looks_like_attributes_is_allowed() {
    let list = "a/b 'c' d=e ".repeat(30_000);
    let html =
        format!("<p data-list=\"{list}\">x</p><script>if (a<b) {{ c }} // ></script><p>{list}</p><!-- {list} -->");
    assert!(texts(&html)[0] == "x");
}
