//! Tells cargo that the folder of the web console belongs to the program: the macro that takes its files in tells of
//! those that are there, and not that one was added.

fn main() {
    println!("cargo::rerun-if-changed=console");
}
