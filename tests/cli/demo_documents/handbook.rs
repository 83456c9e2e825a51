//! Generates the handbook for volunteers, a PDF of three pages.

use crate::pdf_builder::{Builder, text};

/// A paragraph, or the heading of the following ones.
enum HandbookPart {
    Heading(&'static str),
    Paragraph(&'static str),
}
use HandbookPart::{Heading, Paragraph};

const PAGES: [&[HandbookPart]; 3] = [
    &[
        Heading("Welcome to Gull Rock"),
        Paragraph(
            "Thank you for giving your time to the lighthouse. This handbook tells you what a day at the museum looks \
             like, how we keep visitors safe, and what to do when something goes wrong. Keep it in your locker.",
        ),
        Heading("Your first week"),
        Paragraph(
            "On your first day the keeper of the day shows you the tower, the shop and the boat house. You work beside \
             somebody experienced for five shifts before you guide a group alone. Your badge and the grey jacket are \
             in the drawer under the ticket desk.",
        ),
        Heading("Shifts and breaks"),
        Paragraph(
            "A shift is six hours with a break of forty minutes. If you are ill, call the ticket desk before eight in \
             the morning, so that somebody can take the early boat in your place. Swapping a shift is fine when you \
             write it in the rota.",
        ),
    ],
    &[
        Heading("The tower"),
        Paragraph(
            "There are 142 steps to the lantern. Ask visitors before they climb whether they are afraid of heights or \
             have trouble with their heart; the only bench is on the landing after step 71.",
        ),
        Heading("The lamp room"),
        Paragraph(
            "The floor of the lamp room is old. No more than eight people may stand in it at the same time, and the \
             guide counts as one of them. Nobody touches the lens: the oil of one finger leaves a mark that takes an \
             hour to remove. Rucksacks stay at the foot of the stairs.",
        ),
        Heading("Wind"),
        Paragraph(
            "Close the outer gallery when the wind reaches force seven, and the whole tower at force nine. The reading \
             that counts is the one on the instrument beside the radio. Write the time of closing in the weather book.",
        ),
    ],
    &[
        Heading("When somebody is hurt"),
        Paragraph(
            "Call the coast guard on channel 16 and then the keeper of the day. The stretcher hangs in the oil store, \
             the defibrillator beside the ticket desk. Stay with the person; another visitor can meet the boat.",
        ),
        Heading("Fire"),
        Paragraph(
            "Ring the brass bell without stopping. Everybody gathers at the landing stage. Count your group, and tell \
             the keeper of the day the number and not your impression.",
        ),
        Heading("Lost property"),
        Paragraph(
            "What visitors leave behind goes into the green chest in the shop with the date on it. After ninety days it \
             is given to the harbour mission. Keys and passports go to the harbour master on the same evening.",
        ),
    ],
];

/// A page is 600 by 800 points.
const LEFT: i32 = 72;
const TOP: i32 = 730;
/// Characters per line.
const WIDTH: usize = 84;

pub(super) fn pdf() -> Vec<u8> {
    let mut builder = Builder::new();
    let info = builder.object("<< /Title (Handbook for volunteers) /Author (Gull Rock Lighthouse Museum) >>");
    builder.trailer(&format!("/Info {info} 0 R"));
    for (number, parts) in PAGES.into_iter().enumerate() {
        let mut y = TOP;
        let mut content = String::new();
        if number == 0 {
            content += &text("F2", 22, LEFT, y, "Handbook for volunteers");
            y -= 44;
        }
        for part in parts {
            match part {
                Heading(heading) => {
                    content += &text("F2", 15, LEFT, y - 8, heading);
                    y -= 32;
                }
                Paragraph(paragraph) => {
                    for line in wrap(paragraph) {
                        content += &text("F1", 11, LEFT, y, &line);
                        y -= 15;
                    }
                    y -= 12;
                }
            }
        }
        builder.page(&content);
    }
    builder.build()
}

fn wrap(paragraph: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let last = lines.last_mut().expect("there is one from the beginning");
        match last.len() + 1 + word.len() > WIDTH {
            true => lines.push(word.to_owned()),
            false if last.is_empty() => *last = word.to_owned(),
            false => *last += &format!(" {word}"),
        }
    }
    lines
}
