//! Who is calling, and how they prove it.

pub mod oauth;
