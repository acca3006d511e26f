//! The program of the younger build: `save PATH today|old`, `save-in-parts PATH today|old`, or
//! `read PATH`. It prints the result.

mod states;

use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["save", path, day] => println!("{}", states::save(Path::new(path), day == "today")),
        ["save-in-parts", path, day] => states::save_in_parts(Path::new(path), day == "today"),
        ["read", path] => println!("{:?}", states::read(Path::new(path))),
        _ => panic!("{words:?}: not what this program does"),
    }
}
