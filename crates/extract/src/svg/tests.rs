use std::fmt::Write;

use crate::{Document, Error, ExtractionMethod, Format, Limits, Options, document, svg_raster};

fn read(inside: &str) -> Document {
    let svg = format!("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 20'>{inside}</svg>");
    document(svg.as_bytes(), Format::Svg, &Options::default()).unwrap()
}

fn texts(inside: &str) -> Vec<String> {
    read(inside).pages.remove(0).blocks.into_iter().map(|block| block.text).collect()
}

#[test]
fn text_comes_in_document_order() {
    let inside =
        "<title>A chart</title><g><text>one <tspan>two</tspan></text></g><text><textPath>three</textPath></text>";
    assert_eq!(texts(inside), ["A chart", "one two", "three"]);
    let read = read(inside);
    assert_eq!((read.method, read.metadata.title.as_deref()), (ExtractionMethod::ImageAnalysis, Some("A chart")));
    assert_eq!((read.metadata.width, read.metadata.height), (Some(40), Some(20)));
}

#[test]
fn lines_are_apart_and_letters_of_a_word_are_not() {
    assert_eq!(texts("<text><tspan x='0'>one</tspan><tspan x='0' dy='9'>two</tspan></text>"), ["one two"]);
    assert_eq!(texts("<text>wo<tspan fill='red'>rd</tspan></text>"), ["word"]);
}

#[test]
fn what_is_never_drawn_is_not_read() {
    let inside = "<style>a{}</style><script>b</script><text display='none'>c</text>\
        <switch><text systemLanguage='de'>Wort</text><text>word</text></switch>";
    assert_eq!(texts(inside), ["Wort"]);
}

#[test]
fn a_picture_without_words_is_an_empty_page_to_be_looked_at() {
    let read = read("<path d='M0 0h9v9z'/>");
    assert!(read.pages[0].blocks.is_empty());
    assert_eq!(read.warnings, []);
}

#[test]
fn entities_within_entities_are_not_expanded_and_the_usual_document_type_does_no_harm() {
    let usual =
        "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/svg11.dtd\"><svg><text>a</text></svg>";
    assert_eq!(document(usual.as_bytes(), Format::Svg, &Options::default()).unwrap().text(), "a");
    let bomb = "<!DOCTYPE svg [<!ENTITY a 'xxxx'><!ENTITY b '&a;&a;'>]><svg><text>&b;</text></svg>";
    assert_eq!(document(bomb.as_bytes(), Format::Svg, &Options::default()).unwrap_err().kind(), "corrupted_file");
}

#[test]
fn plain_entities_are_put_where_they_are_named() {
    let svg = "<!DOCTYPE svg PUBLIC \"a\" \"b\" [<!-- ]> --><!ENTITY ns_svg \"http://www.w3.org/2000/svg\">\n\
        <!ENTITY odd ']>'>\n<!ENTITY outside SYSTEM 'file:///etc/hostname'>]>\n<svg xmlns='&ns_svg;'><text>a &odd; &amp;</text></svg>";
    assert_eq!(document(svg.as_bytes(), Format::Svg, &Options::default()).unwrap().text(), "a ]> &");
    assert!(svg_raster(svg.replace("<svg ", "<svg width='9' height='9' ").as_bytes(), &Limits::default()).is_ok());
    let outside = svg.replace("&odd;", "&outside;");
    assert_eq!(document(outside.as_bytes(), Format::Svg, &Options::default()).unwrap_err().kind(), "corrupted_file");
    let limits = Limits { characters: 1000, ..Limits::default() };
    let grown = svg.replace("&odd;", &"&ns_svg;".repeat(100));
    let refused = Err(Error::TooMuch { what: "characters", most: 1000 });
    assert_eq!(document(grown.as_bytes(), Format::Svg, &Options { limits, ..Options::default() }), refused);
}

#[test]
fn nesting_without_end_does_no_harm() {
    let mut svg = "<g>".repeat(200_000);
    let _ = write!(svg, "<text>deep</text>{}", "</g>".repeat(200_000));
    assert_eq!(texts(&svg), ["deep"]);
    let svg = format!("<svg xmlns='http://www.w3.org/2000/svg'>{svg}</svg>");
    let refused = Err(Error::TooMuch { what: "levels of nested elements", most: 256 });
    assert_eq!(svg_raster(svg.as_bytes(), &Limits::default()), refused);
}

#[test]
fn namespaces_within_namespaces_are_bounded_and_the_same_one_may_come_often() {
    let nested: String = (0..3000).map(|number| format!("<g xmlns:n{number}='u{number}'>")).collect();
    let svg = format!("<svg>{nested}{}</svg>", "</g>".repeat(3000));
    let refused = Err(Error::TooMuch { what: "namespace prefixes", most: 32 });
    assert_eq!(document(svg.as_bytes(), Format::Svg, &Options::default()), refused);
    let label = "<foreignObject><div xmlns='http://www.w3.org/1999/xhtml' xmlns:x='u'>a</div></foreignObject>";
    assert_eq!(texts(&label.repeat(3000)).len(), 3000);
}

#[test]
fn it_is_drawn_on_white_within_the_limit() {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><rect width='20' height='20'/>\
        <image href='/etc/hostname' width='9' height='9'/></svg>";
    let raster = svg_raster(svg.as_bytes(), &Limits::default()).unwrap();
    assert_eq!((raster.width, raster.height), (320, 160));
    assert_eq!((raster.rgb[0], raster.rgb[319 * 3]), (0, 255));
    let small = Limits { pixels: 200, ..Limits::default() };
    let raster = svg_raster(svg.as_bytes(), &small).unwrap();
    assert!(u64::from(raster.width * raster.height) <= 200);
}

/// With them, the drawing would be red.
#[test]
fn filters_are_left_out_of_what_is_drawn() {
    let draw = |inside: &str| {
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='50'><filter id='f'><feFlood flood-color='red'/>\
             </filter>{inside}</svg>"
        );
        svg_raster(svg.as_bytes(), &Limits::default()).unwrap()
    };
    let plain = draw("<g class='a'><path d='M9 9h9v9z' fill='blue'/></g>");
    for inside in [
        "<g class='a' filter='url(#f)'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<g class='a' style='opacity:1; filter : url(#f)'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<g class='a' style='filter:blur(2px) drop-shadow(16px 16px 10px red)'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<g class='a' style='&#102;ilter:url(#f)'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<g class='a' style='filter:url(#f) !important'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<g xmlns:s='http://www.w3.org/2000/svg' s:filter='url(#f)' filter='url(#f)'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<g filter='url(#f)'><g filter='inherit'><path d='M9 9h9v9z' fill='blue'/></g></g>",
        "<style>.a{filter/* é */:url(#f)}</style><g class='a'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<style>*{filter:url(#f)!important} #g{filter:url(#f)!important}</style><g id='g'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<style>g{fil<![CDATA[ter:url(#f)} ]]></style><g class='a'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<style>.a{&#102;ilter:url(#f)}</style><g class='a'><path d='M9 9h9v9z' fill='blue'/></g>",
        "<style>.filter{fill:blue}</style><g filter='url(#none)'><path class='filter' d='M9 9h9v9z'/></g>",
        "<defs><path id='p' filter='url(#f)' d='M9 9h9v9z' fill='blue'/></defs><use href='#p' filter='url(#f)'/>",
    ] {
        assert!(draw(inside).rgb == plain.rgb, "{inside}");
    }
}

/// The filter floods the innermost mask with white, so that the path would be drawn.
#[test]
fn a_filter_that_a_character_reference_hides_in_the_third_level_of_masks_is_not_rendered() {
    let draw = |style: &str| {
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='50'><filter id='f'><feFlood flood-color='white'/></filter>\
             <mask id='c'><rect width='100' height='50' fill='black' style='{style}'/></mask>\
             <mask id='b' mask='url(#c)'><rect width='100' height='50' fill='white'/></mask>\
             <mask id='a' mask='url(#b)'><rect width='100' height='50' fill='white'/></mask>\
             <path mask='url(#a)' d='M9 9h40v30z' fill='blue'/></svg>"
        );
        svg_raster(svg.as_bytes(), &Limits::default()).unwrap()
    };
    assert!(draw("&#102;ilter:url(#f)").rgb == draw("").rgb);
    // The masks count: without the innermost rectangle in black, the path is drawn.
    assert!(draw("fill:white").rgb != draw("").rgb);
}
