//! Deterministic generator of typing errors.

/// Introduces typing errors with a seeded pseudo-random sequence.
#[derive(Debug, Clone)]
pub struct TypoGenerator {
    state: u64,
}

impl TypoGenerator {
    pub fn with_seed(seed: u64) -> TypoGenerator {
        TypoGenerator { state: seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    /// Returns the text with this share of its characters mistyped. Deletion, substitution, insertion and transposition
    /// are equally likely.
    pub fn add_typos(&mut self, text: &str, share: f64) -> String {
        if share <= 0.0 {
            return text.to_owned();
        }
        let mut typed: Vec<char> = Vec::with_capacity(text.len());
        for letter in text.chars() {
            if self.next() >= share {
                typed.push(letter);
                continue;
            }
            match (self.next() * 4.0) as u32 {
                0 => {}
                1 => typed.push(self.letter()),
                2 => typed.extend([letter, self.letter()]),
                _ => {
                    let before = typed.pop();
                    typed.extend([Some(letter), before].into_iter().flatten());
                }
            }
        }
        typed.into_iter().collect()
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + (self.next() * 26.0) as u8)
    }

    /// Uniform in 0..1.
    fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as f64 / (1u64 << 31) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_characters_are_mistyped_as_asked_for() {
        let text = "x".repeat(20_000);
        let typed = TypoGenerator::with_seed(1).add_typos(&text, 0.1);
        let strange = typed.chars().filter(|letter| *letter != 'x').count();
        // Half of the errors insert a different letter; deletions and transpositions do not show in this text.
        assert!((850..1150).contains(&strange), "{strange}");
    }

    #[test]
    fn the_same_seed_makes_the_same_errors() {
        let typed = |seed| TypoGenerator::with_seed(seed).add_typos("how are you today, my friend?", 0.2);
        assert_eq!(typed(3), typed(3));
        assert_ne!(typed(3), typed(4));
        assert_eq!(TypoGenerator::with_seed(3).add_typos("ö", 0.0), "ö");
    }
}
