//! Text of a settings file to its entries. People write comments and trailing commas: those are
//! read over with a word about it, and what stands before a real mistake is kept.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::{Map, Value};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Parsed {
    pub entries: Map<String, Value>,
    /// Line, counted from 1, and what is wrong there.
    pub problems: Vec<(usize, String)>,
}

pub(super) fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return parsed;
    }
    let plain = without_extras(text);
    if let Some(line) = plain.first_comment {
        parsed.problems.push((line, "comments are not JSON; they were read over".to_owned()));
    }
    if let Some(line) = plain.first_trailing_comma {
        let problem = "a comma before a closing bracket is not JSON; it was read over".to_owned();
        parsed.problems.push((line, problem));
    }
    let mut json = serde_json::Deserializer::from_str(&plain.text);
    let result = json.deserialize_map(Entries(&mut parsed.entries)).and_then(|()| json.end());
    if let Err(error) = result {
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        let kept = parsed.entries.len();
        parsed.problems.push((
            error.line(),
            format!("not valid JSON ({what}); {kept} settings before it are in force, the rest of the file is not"),
        ));
    }
    parsed
}

/// Collects entries as they come, so that a mistake costs only what follows it.
struct Entries<'a>(&'a mut Map<String, Value>);

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry()? {
            self.0.insert(key, value);
        }
        Ok(())
    }
}

/// The line of a key, counted from 1; 1 when it cannot be found.
pub(super) fn line_of(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |index| index + 1)
}

struct Plain {
    /// As long as the original, line by line.
    text: String,
    first_comment: Option<usize>,
    first_trailing_comma: Option<usize>,
}

/// Blanks comments and trailing commas out, leaving every line where it is.
fn without_extras(text: &str) -> Plain {
    let mut plain = Plain {
        text: String::with_capacity(text.len()),
        first_comment: None,
        first_trailing_comma: None,
    };
    let mut line = 1;
    // Where the last comma stands, while nothing but blanks and comments followed it.
    let mut comma: Option<(usize, usize)> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                comma = None;
                plain.text.push(c);
                copy_string(&mut chars, &mut plain.text, &mut line);
            }
            '/' if matches!(chars.peek(), Some('/' | '*')) => {
                plain.first_comment.get_or_insert(line);
                blank_comment(&mut chars, &mut plain.text, &mut line);
            }
            _ => {
                match (c, comma) {
                    (',', _) => comma = Some((plain.text.len(), line)),
                    ('}' | ']', Some((at, comma_line))) => {
                        plain.text.replace_range(at..=at, " ");
                        plain.first_trailing_comma.get_or_insert(comma_line);
                        comma = None;
                    }
                    _ if !c.is_whitespace() => comma = None,
                    _ => {}
                }
                line += usize::from(c == '\n');
                plain.text.push(c);
            }
        }
    }
    plain
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn copy_string(chars: &mut Chars<'_>, text: &mut String, line: &mut usize) {
    let mut escaped = false;
    for c in chars.by_ref() {
        text.push(c);
        *line += usize::from(c == '\n');
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return,
            _ => {}
        }
    }
}

/// The slash was taken; what follows tells the kind.
fn blank_comment(chars: &mut Chars<'_>, text: &mut String, line: &mut usize) {
    let to_line_end = chars.next() == Some('/');
    text.push_str("  ");
    let mut previous = ' ';
    while let Some(&c) = chars.peek() {
        if to_line_end && c == '\n' {
            return;
        }
        chars.next();
        *line += usize::from(c == '\n');
        text.push(if c == '\n' { '\n' } else { ' ' });
        if !to_line_end && previous == '*' && c == '/' {
            return;
        }
        previous = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, entries: &str, problem_lines: &[usize]) {
        let parsed = parse(text);
        assert_eq!(Value::Object(parsed.entries.clone()).to_string(), entries, "{text}");
        let lines: Vec<usize> = parsed.problems.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, problem_lines, "{text}: {:?}", parsed.problems);
    }

    #[test]
    fn comments_and_trailing_commas_are_read_over_with_their_line() {
        check("", "{}", &[]);
        check("\u{feff}{\"a\":1}", r#"{"a":1}"#, &[]);
        check("{\"a\":1\n// why\n,\"b\":2}", r#"{"a":1,"b":2}"#, &[2]);
        check("{\"a\": /* one\ntwo */ 1}", r#"{"a":1}"#, &[1]);
        check("{\"a\":[1,\n2,],\n}", r#"{"a":[1,2]}"#, &[2]);
        check("{\"a\":1, // last\n}", r#"{"a":1}"#, &[1, 1]);
        check(
            "{\"url\":\"http://x/*y*/\",\"q\":\"\\\"//\"}",
            r#"{"url":"http://x/*y*/","q":"\"//"}"#,
            &[],
        );
    }

    #[test]
    fn what_stands_before_a_mistake_is_kept_and_the_line_is_told() {
        check("{\"a\":1,\n\"b\":}\n", r#"{"a":1}"#, &[2]);
        check("{\"a\":1,\n\"b\":2", r#"{"a":1,"b":2}"#, &[2]);
        check("{\"a\":1}\nrest", r#"{"a":1}"#, &[2]);
        check("[1]", "{}", &[1]);
        check("model = \"x\"", "{}", &[1]);
        check("/* open", "{}", &[1, 1]);
    }
}
