//! Linear formulas: `(a+b)/c`, `x^2`, `∑_(n=1)^9 n`.

use super::xml::Xml;
use crate::Error;

/// Appends the formula of the current element.
pub(crate) fn math(xml: &mut Xml<'_>, text: &mut String) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "t" => xml.append(text)?,
            "d" => delimited(xml, text)?,
            "nary" => operator(xml, text)?,
            "den" => {
                text.push('/');
                group(xml, text)?;
            }
            "num" | "fName" => group(xml, text)?,
            "sup" => raised(xml, text, '^')?,
            "sub" | "lim" => raised(xml, text, '_')?,
            "deg" => xml.skip()?,
            "rad" => {
                text.push('√');
                math(xml, text)?;
            }
            // Rows of a matrix or of a system of equations.
            "mr" | "eqArr" => {
                text.push(' ');
                math(xml, text)?;
            }
            name if name.ends_with("Pr") => xml.skip()?,
            _ => math(xml, text)?,
        }
    }
    Ok(())
}

/// Adds parentheses unless the group is a single name or number.
fn group(xml: &mut Xml<'_>, text: &mut String) -> Result<(), Error> {
    let mut inner = String::new();
    math(xml, &mut inner)?;
    let inner = inner.trim();
    if inner.chars().all(char::is_alphanumeric) || (inner.starts_with('(') && inner.ends_with(')')) {
        text.push_str(inner);
    } else {
        text.push('(');
        text.push_str(inner);
        text.push(')');
    }
    Ok(())
}

fn raised(xml: &mut Xml<'_>, text: &mut String, sign: char) -> Result<(), Error> {
    let mut inner = String::new();
    group(xml, &mut inner)?;
    if !inner.is_empty() {
        text.push(sign);
        text.push_str(&inner);
    }
    Ok(())
}

/// Brackets; properties define them unless they are round.
fn delimited(xml: &mut Xml<'_>, text: &mut String) -> Result<(), Error> {
    let (mut before, mut after) = ("(".to_owned(), ")".to_owned());
    let mut inner = Vec::new();
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "dPr" => {
                while let Some(tag) = xml.child()? {
                    let place = match tag.name() {
                        "begChr" => Some(&mut before),
                        "endChr" => Some(&mut after),
                        _ => None,
                    };
                    if let (Some(place), Some(sign)) = (place, tag.get("val")) {
                        *place = sign.into_owned();
                    }
                    xml.skip()?;
                }
            }
            _ => {
                let mut piece = String::new();
                math(xml, &mut piece)?;
                inner.push(piece);
            }
        }
    }
    text.push_str(&before);
    text.push_str(&inner.join(", "));
    text.push_str(&after);
    Ok(())
}

/// A sum, product or integral: the sign, its limits, and its operand.
fn operator(xml: &mut Xml<'_>, text: &mut String) -> Result<(), Error> {
    let mut sign = "∫".to_owned();
    let mut rest = String::new();
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "naryPr" => {
                while let Some(tag) = xml.child()? {
                    if let ("chr", Some(value)) = (tag.name(), tag.get("val")) {
                        sign = value.into_owned();
                    }
                    xml.skip()?;
                }
            }
            "sub" => raised(xml, &mut rest, '_')?,
            "sup" => raised(xml, &mut rest, '^')?,
            _ => {
                rest.push(' ');
                math(xml, &mut rest)?;
            }
        }
    }
    text.push_str(&sign);
    text.push_str(&rest);
    Ok(())
}
